# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Evaluation pipeline, and the image size in pipelines."""

from collections.abc import Iterator

from mmclca.errors import Error

# size argument per crop
CROPS = dict(
    RandomCrop='crop_size', CenterCrop='crop_size', RandomResizedCrop='scale'
)
RESIZES = ('Resize', 'ResizeEdge')
# crop size / resized size, as in the paper
CROP = 0.875


def evaluation_pipeline(size: int) -> list[dict]:
    """Return the pipeline of an evaluation: load, resize, center crop."""
    side = int(size / CROP)
    resize = dict(
        type='Resize',
        scale=(side, side),
        backend='pillow',
        interpolation='bicubic',
    )
    return [
        dict(type='mmclca.LoadPhoto'),
        resize,
        dict(type='CenterCrop', crop_size=size),
        dict(type='PackInputs'),
    ]


def set_image_size(dataset: dict | list, size: int) -> None:
    """Set the image size in all pipelines of a dataset, in place.

    With a crop, images are resized to ``size / CROP`` first.

    Raises:
        Error: If the pipeline lacks a resize or crop step.
    """
    crops = [step for step in _dicts(dataset) if _name(step) in CROPS]
    resizes = [step for step in _dicts(dataset) if _name(step) in RESIZES]
    if not (crops or resizes):
        raise Error(
            'cannot set the image size: the pipeline has no resize or crop '
            f'step; add one of {", ".join((*CROPS, *RESIZES))}'
        )
    for step in crops:
        step[CROPS[_name(step)]] = (size, size)
    side = int(size / CROP) if crops else size
    for step in resizes:
        edge = _name(step) == 'ResizeEdge'  # its scale is a number
        step['scale'] = side if edge else (side, side)


def _name(step: dict) -> str:
    return str(step.get('type', '')).rpartition('.')[2]


def _dicts(value: object) -> Iterator[dict]:
    """Yield all dicts within a value."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _dicts(inner)
