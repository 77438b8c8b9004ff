# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a dataset of synthetic leaves: images and lists."""

import json
from dataclasses import replace
from functools import partial
from multiprocessing import Pool
from pathlib import Path

import cv2
import numpy as np

from mmclca.checkpoints.gate.folders import remove_folder
from mmclca.errors import Error
from mmclca.utils.files import replace_bytes, replace_text, write_rows
from mmclca.utils.messages import check_integer, track

from ..photos import LabeledImages
from ..photos.lists import SPLITS, format_lists, split_sizes, write_lists
from .cultivars import draw_leaf, make_species

LEVELS = 'levels.csv'  # species of each class
MARK = 'synthetic_leaves.json'  # options; marks a folder as created here


def draw_data_set(out: Path, options: dict, jobs: int = 1) -> LabeledImages:
    """Draw all images of a dataset in ``jobs`` processes, and write the lists.

    Options are ``classes`` and ``species`` (their numbers), ``per_class``,
    ``size`` (pixels per side), ``seed``, ``difference`` as in
    :func:`make_species`, and ``val_fraction`` and ``test_fraction`` per class.
    Several species are also listed in ``levels.csv``. Images from an earlier
    call are removed.

    Raises:
        Error: If an option is out of range, or ``out`` is not empty and
            was not created here.
    """
    for name, least in dict(per_class=2, size=32, seed=0).items():
        check_integer(least, **{name: options[name]})
    number, seed = options['per_class'], options['seed']
    images = _plan(out, options)
    plants = make_species(
        options['species'], options['classes'], seed, options['difference']
    )
    species = [number for number, _ in plants]
    cultivars = [cultivar for _, cultivar in plants]
    _take_over(out, options)
    if options['species'] > 1:
        names = [f'species_{number + 1:02d}' for number in species]
        rows = zip(images.classes, names, strict=True)
        write_rows(out / LEVELS, [('class', 'species'), *rows])
    tasks = [
        (path, cultivars[label], [seed, label, position % number])
        for position, (path, label) in enumerate(
            zip(images.paths, images.labels, strict=True)
        )
        if label is not None
    ]
    _draw_all(partial(_draw, size=options['size']), tasks, jobs)
    write_lists(format_lists(images, out, SPLITS), force=True)
    return images


def _draw_all(task, tasks: list, jobs: int):
    """Draw all images in ``jobs`` processes."""
    title, number = 'Drawing leaves', len(tasks)
    if jobs == 1:
        for _ in track(map(task, tasks), title, number):
            pass
        return
    with Pool(jobs) as pool:
        drawn = pool.imap_unordered(task, tasks, chunksize=16)
        for _ in track(drawn, title, number):
            pass


def _plan(out: Path, options: dict) -> LabeledImages:
    """Plan the paths of all images, with classes and splits."""
    number = options['per_class']
    names = [f'cultivar_{i:02d}' for i in range(1, options['classes'] + 1)]
    sizes = split_sizes(
        number, options['val_fraction'], options['test_fraction']
    )
    paths = [
        str(out / 'images' / name / f'{name}_{index:04d}.jpg')
        for name in names
        for index in range(1, number + 1)
    ]
    classes = np.repeat(names, number).tolist()
    images = LabeledImages.from_names(paths, classes, str(out), names)
    return replace(
        images, splits=np.repeat(SPLITS, sizes).tolist() * len(names)
    )


def _take_over(out: Path, options: dict) -> None:
    """Mark a folder as created by this tool, and remove its old images."""
    mark = out / MARK
    if mark.exists():
        remove_folder(out / 'images')
    elif out.exists() and any(out.iterdir()):
        raise Error(
            f'{out} is not empty and was not created by this tool ({MARK} is '
            'missing); choose another folder'
        )
    replace_text(mark, json.dumps(options, indent=1) + '\n')


def _draw(task: tuple, size: int) -> None:
    """Draw and write the image of a task: path, cultivar and seed."""
    path, cultivar, seed = task
    cv2.setNumThreads(1)
    image = draw_leaf(cultivar, np.random.default_rng(seed), size)
    suffix, bgr = Path(path).suffix, image[..., ::-1]
    _, content = cv2.imencode(suffix, bgr)  # JPEG quality 95 by default
    replace_bytes(Path(path), content.tobytes(), sync=False)
