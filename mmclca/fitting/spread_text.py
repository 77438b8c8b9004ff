# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe how classes are spread over days, cameras, folders and groups."""

from collections.abc import Iterator

from mmclca.datasets.photos import Spread
from mmclca.utils.messages import join_first

from .record import FitRecord
from .wording import Description, plural

MAX_NAMES = 12  # classes listed in a line


def describe_coinciding(record: FitRecord) -> Description:
    """Describe classes that coincide with days, cameras or folders.

    Empty without them.
    """
    lines = [
        line
        for spread in record.photos.coinciding
        for line in _describe_coinciding(spread)
    ]
    details = (
        'An accuracy from these photos holds for the same '
        f'{_join_kinds(record)} only, and more such photos do not help.'
    )
    return Description(tuple(lines), details if lines else '')


def describe_needed(record: FitRecord) -> str:
    """Describe why an accuracy is not shown first, and the missing photos."""
    untested = record.untested_classes
    if untested:
        kind = 'group' if record.is_grouped else 'day'
        classes = join_first(untested, MAX_NAMES)
        return f'no second {kind} of {classes} could be tested; add another'
    needed = '; '.join(
        f'add photos from another {spread.kind} of '
        f'{join_first(spread.coinciding, MAX_NAMES)}'
        for spread in record.photos.coinciding
    )
    return f'classes and {_join_kinds(record)} coincide; {needed}'


def describe_spreads(record: FitRecord) -> dict[str, tuple[str, ...]]:
    """Describe days and named groups, by title."""
    titles = {'day': 'Days', 'group': 'Groups'}
    return {
        titles[spread.kind]: tuple(_describe_spread(spread))
        for spread in record.photos.spreads
        if spread.kind in titles
    }


def _describe_coinciding(spread: Spread) -> Iterator[str]:
    """Describe what coincides, and list the classes with their value."""
    kinds = f'{spread.kind}s'
    yield (
        f'classes and {kinds} coincide: the model may tell {kinds} apart '
        'instead of classes'
    )
    classes = [
        f'{name} ({spread.single[name] or "unknown"} only)'
        for name in spread.coinciding
    ]
    yield (
        f'another {spread.kind} is needed for {join_first(classes, MAX_NAMES)}'
    )


def _describe_spread(spread: Spread) -> Iterator[str]:
    """Describe the number of values, their classes, and untested classes."""
    low, high = spread.classes_per_value
    numbers = f'{low} to {high}' if low < high else f'{low}'
    classes = 'class' if high == 1 else 'classes'
    each = ', each' * (spread.number > 1)
    yield f'{plural(spread.number, spread.kind)}{each} in {numbers} {classes}'
    if spread.single and not (spread.kind == 'day' and spread.coinciding):
        names = join_first(spread.single, MAX_NAMES)
        yield f'not tested on another {spread.kind}, with one only: {names}'
    if spread.kind == 'group' and high > 1:
        yield (
            'if they are numbered within each class, include the class: write '
            "'^[^/]+/.*?' before the expression"
        )


def _join_kinds(record: FitRecord) -> str:
    return ' and '.join(f'{x.kind}s' for x in record.photos.coinciding)
