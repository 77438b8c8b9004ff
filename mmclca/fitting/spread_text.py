# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe how classes are spread over days, cameras, folders and groups."""

from collections.abc import Iterator, Sequence

from mmclca.datasets.photos import Spread
from mmclca.languages import text
from mmclca.utils.messages import join_first

from .record import FitRecord
from .wording import Description

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
    kinds = join_kinds(record.photos.coinciding)
    details = text('model.coinciding_explained', kinds=kinds)
    return Description(tuple(lines), details if lines else '')


def describe_needed(record: FitRecord) -> str:
    """Describe why an accuracy is not shown first, and the missing photos."""
    untested = record.untested_classes
    if untested:
        kind = 'group' if record.is_grouped else 'day'
        return text(
            'model.no_second',
            kind=text(f'model.kind_{kind}'),
            classes=join_first(untested, MAX_NAMES),
        )
    needed = '; '.join(
        text(
            'model.add_from_another',
            kind=text(f'model.kind_{spread.kind}'),
            classes=join_first(spread.coinciding, MAX_NAMES),
        )
        for spread in record.photos.coinciding
    )
    kinds = join_kinds(record.photos.coinciding)
    return text('model.coincide_and_needed', kinds=kinds, needed=needed)


def describe_spreads(record: FitRecord) -> dict[str, tuple[str, ...]]:
    """Describe days and named groups, by title."""
    titles = {'day': text('model.days'), 'group': text('model.groups')}
    return {
        titles[spread.kind]: tuple(_describe_spread(spread))
        for spread in record.photos.spreads
        if spread.kind in titles
    }


def _describe_coinciding(spread: Spread) -> Iterator[str]:
    """Describe what coincides, and list the classes with their value."""
    kinds = text(f'model.kinds_{spread.kind}')
    yield text('model.coincide', kinds=kinds)
    classes = [
        text(
            'model.class_with_one',
            name=name,
            value=spread.single[name] or text('count.unknown'),
        )
        for name in spread.coinciding
    ]
    yield text(
        'model.another_needed',
        kind=text(f'model.kind_{spread.kind}'),
        classes=join_first(classes, MAX_NAMES),
    )


def _describe_spread(spread: Spread) -> Iterator[str]:
    """Describe the number of values, their classes, and untested classes."""
    low, high = spread.classes_per_value
    classes = text('count.classes', number=high)
    if low < high:
        classes = text('model.class_range', low=low, high=high)
    yield text(
        f'model.spread_{spread.kind}', number=spread.number, classes=classes
    )
    if spread.single and not (spread.kind == 'day' and spread.coinciding):
        yield text(
            'model.untested',
            kind=text(f'model.kind_{spread.kind}'),
            classes=join_first(spread.single, MAX_NAMES),
        )
    if spread.kind == 'group' and high > 1:
        yield text('model.numbered', pattern='^[^/]+/.*?')


def join_kinds(spreads: Sequence[Spread]) -> str:
    """Name what coincides with classes: 'days and cameras'; else 'days'."""
    kinds = [spread.kind for spread in spreads] or ['day']
    return text('model.and').join(text(f'model.kinds_{x}') for x in kinds)
