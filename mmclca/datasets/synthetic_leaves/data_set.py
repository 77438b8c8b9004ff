# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A data set of drawn leaves: images and their lists."""

import json
from functools import partial
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from mmengine.utils import track_parallel_progress, track_progress

from ..photographs import Photographs
from ..photographs.lists import PARTS, lines_of_lists, split_sizes, write_lists
from .cultivars import draw_leaf, make_cultivars

MARK = 'synthetic_leaves.json'  # says that a folder is ours, and its options


class Specimen(NamedTuple):
    """An image to draw."""

    path: str
    label: int
    index: int
    split: str


def draw_data_set(out: Path, options: dict, jobs: int = 1) -> list[Specimen]:
    """Draw all images of a data set and write their lists.

    Args:
        out (Path): A folder that is not there, is empty, or was drawn.
        options (dict): ``classes``, ``per_class``, ``size``, ``seed``,
            ``difference``, ``val_fraction``, ``test_fraction``.
        jobs (int): Processes. Defaults to 1.

    Raises:
        ValueError: If an option is out of range, or the folder has files that
            were not drawn here.
    """
    for name, least in (('per_class', 2), ('size', 32), ('seed', 0)):
        if options[name] < least:
            raise ValueError(
                f'--{name.replace("_", "-")} is {options[name]}; at least '
                f'{least} is needed'
            )
    specimens = _plan(options)
    size, seed = options['size'], options['seed']
    cultivars = make_cultivars(options['classes'], seed, options['difference'])
    _take_over(out, options, specimens)
    task = partial(_draw, out=out, cultivars=cultivars, size=size, seed=seed)
    if jobs == 1:
        track_progress(task, specimens)
    else:
        track_parallel_progress(task, specimens, jobs, chunksize=16)
    _write_lists(out, specimens)
    return specimens


def _plan(options: dict) -> list[Specimen]:
    """List the images of a data set, class by class."""
    fractions = options['val_fraction'], options['test_fraction']
    sizes = split_sizes(options['per_class'], *fractions)
    splits = np.repeat(PARTS, sizes).tolist()
    return [
        Specimen(_name(label, index), label, index, split)
        for label in range(options['classes'])
        for index, split in enumerate(splits)
    ]


def _take_over(out: Path, options: dict, specimens: list[Specimen]) -> None:
    """Mark a folder as ours; images that it had and will not have go."""
    mark = out / MARK
    if mark.exists():
        before = _plan(json.loads(mark.read_text()))
        for path in {s.path for s in before} - {s.path for s in specimens}:
            (out / path).unlink(missing_ok=True)
    elif out.exists() and any(out.iterdir()):
        raise ValueError(
            f'{out} is not empty, and its files were not drawn here (it has '
            f'no {MARK}): name another folder'
        )
    out.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps(options, indent=1) + '\n')


def _draw(specimen, out, cultivars, size, seed) -> None:
    cv2.setNumThreads(1)
    rng = np.random.default_rng([seed, specimen.label, specimen.index])
    image = draw_leaf(cultivars[specimen.label], rng, size)
    path = out / specimen.path
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), image[..., ::-1])  # JPEG quality 95 by default


def _class_name(label: int) -> str:
    return f'cultivar_{label + 1:02d}'


def _name(label: int, index: int) -> str:
    name = _class_name(label)
    return f'images/{name}/{name}_{index + 1:04d}.jpg'


def _write_lists(out: Path, specimens: list[Specimen]) -> None:
    images = Photographs(
        [str(out / s.path) for s in specimens],
        [s.label for s in specimens],
        [*map(_class_name, dict.fromkeys(s.label for s in specimens))],
        groups=None,
        splits=[s.split for s in specimens],
        source=str(out),
    )
    write_lists(lines_of_lists(images, out, PARTS), force=True)
