# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a dataset of synthetic leaves: images and lists."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from .cultivars import Cultivar, draw_leaf, make_species

LEVELS = 'levels.csv'  # species of each class
MARK = 'synthetic_leaves.json'  # options; marks a folder as created here


def draw_data_set(out: Path, options: dict, jobs: int = 1) -> LabeledImages:
    """Draw all images of a dataset in ``jobs`` processes, and write the lists.

    Options are ``classes`` and ``species`` (their numbers), ``per_class``,
    ``per_plant``, ``size`` (pixels per side), ``seed``, ``difference`` as in
    :func:`make_species`, and ``val_fraction`` and ``test_fraction`` per class.
    Several species are also listed in ``levels.csv``. With several leaves per
    plant, which share traits (see :func:`draw_leaf`), file names have the
    plant, and no plant is in two splits. Images from an earlier call are
    removed.

    Raises:
        Error: If an option is out of range, or ``out`` is not empty and
            was not created here.
    """
    limits = dict(per_class=2, per_plant=1, size=32, seed=0)
    for name, least in limits.items():
        check_integer(least, **{name: options[name]})
    number, per_plant = options['per_class'], options['per_plant']
    if number % per_plant or number == per_plant:
        raise Error(
            f'per_class={number} leaves are not those of two or more plants '
            f'with per_plant={per_plant}; choose another multiple, such as '
            f'{per_plant * max(number // per_plant, 2)}'
        )
    seed = options['seed']
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
        _Task(path, cultivars[label], seed, label, position % number)
        for position, (path, label) in enumerate(
            zip(images.paths, images.labels, strict=True)
        )
        if label is not None
    ]
    draw = partial(_draw, size=options['size'], per_plant=per_plant)
    _draw_all(draw, tasks, jobs)
    write_lists(format_lists(images, out, SPLITS), force=True)
    return images


@dataclass(frozen=True)
class _Task:
    """A leaf to draw: its file, cultivar, and position within the class."""

    path: str
    cultivar: Cultivar
    seed: int
    label: int
    position: int


def _draw_all(draw: Callable, tasks: list[_Task], jobs: int):
    """Draw all images in ``jobs`` processes."""
    title, number = 'Drawing leaves', len(tasks)
    if jobs == 1:
        for _ in track(map(draw, tasks), title, number):
            pass
        return
    with Pool(jobs) as pool:
        drawn = pool.imap_unordered(draw, tasks, chunksize=16)
        for _ in track(drawn, title, number):
            pass


def _plan(out: Path, options: dict) -> LabeledImages:
    """Plan the paths of all images, with classes and splits."""
    number, per_plant = options['per_class'], options['per_plant']
    names = [f'cultivar_{i:02d}' for i in range(1, options['classes'] + 1)]
    plants = split_sizes(
        number // per_plant, options['val_fraction'], options['test_fraction']
    )
    sizes = [per_plant * count for count in plants]
    endings = [
        f'plant_{index // per_plant + 1:03d}_{index + 1:04d}'
        if per_plant > 1
        else f'{index + 1:04d}'
        for index in range(number)
    ]
    paths = [
        str(out / 'images' / name / f'{name}_{ending}.jpg')
        for name in names
        for ending in endings
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


def _draw(task: _Task, size: int, per_plant: int) -> None:
    """Draw and write the image of a task."""
    cv2.setNumThreads(1)
    place = [task.seed, task.label]
    rng = np.random.default_rng([*place, task.position])
    plant = None
    if per_plant > 1:
        # three numbers are the seed of a leaf
        number = task.position // per_plant
        plant = np.random.default_rng([*place, number, per_plant])
    image = draw_leaf(task.cultivar, rng, size, plant)
    suffix, bgr = Path(task.path).suffix, image[..., ::-1]
    _, content = cv2.imencode(suffix, bgr)  # JPEG quality 95 by default
    replace_bytes(Path(task.path), content.tobytes(), sync=False)
