# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a survey on the screen, and write its counts."""

from collections.abc import Iterator
from pathlib import Path

from mmclca.fitting.accuracy_parts import describe_accuracy
from mmclca.fitting.console_text import list_rows, row
from mmclca.fitting.fit_folder import FitFolder
from mmclca.fitting.record_description import describe_record
from mmclca.fitting.wording import plural
from mmclca.utils.files import write_rows
from mmclca.utils.messages import did_you_mean, join_first
from mmclca.utils.spreadsheets import write_sheet

from .classify import ClassifiedFolder
from .drawing import DrawnSurvey
from .estimate import Estimated
from .measuring import MeasuredSurvey

NONE = 'none of the classes'
MAX_NAMES = 5
COUNT_COLUMNS = ('class', 'photos', 'low', 'high', 'predicted', 'labeled')


def drawn_lines(survey: DrawnSurvey) -> Iterator[str]:
    """Describe the drawn photos, and how to label them."""
    folder, drawn = survey.folder, survey.drawn
    yield from _folder_lines(folder)
    strata = plural(
        len({photo.stratum for photo in drawn}), 'stratum', 'strata'
    )
    yield row(
        'Drawn',
        f'{plural(len(drawn), "photo")} at random from {strata} of predicted '
        'class and score',
    )
    yield row(
        'To do',
        "write the class of each photo into the column 'class'; any other "
        f'word, such as none, means {NONE}',
    )


def measured_lines(survey: MeasuredSurvey, promise: str = '') -> Iterator[str]:
    """Describe accuracy and class counts, next to the promised accuracy."""
    yield from _folder_lines(survey.folder)
    yield row('Labels', plural(len(survey.table.labeled), 'photo'))
    yield from list_rows('Warning', _describe_problems(survey))
    accuracy = survey.estimate.accuracy
    described = describe_accuracy(accuracy.value, accuracy.low, accuracy.high)
    yield row('Result', f'{described} on these photos')
    if promise:
        yield row('Promised', promise)
    yield from list_rows('Count', _describe_counts(survey))


def get_promise(model: Path) -> str:
    """Return the accuracy that fit reported; empty if it was not measured."""
    return describe_record(FitFolder.open(model).read_complete()).claim


def _folder_lines(folder: ClassifiedFolder) -> Iterator[str]:
    """Describe classified and omitted photos."""
    number = plural(len(folder.photos), 'photo')
    yield row('Data', f'{number} in {folder.path}')
    if folder.unreadable:
        path, reason = next(iter(folder.unreadable.items()))
        yield row(
            'Warning',
            f'{plural(len(folder.unreadable), "photo")} unreadable, not '
            f'counted (such as {path}: {reason})',
        )
    if folder.in_training:
        yield row(
            'Warning',
            f'{plural(folder.in_training, "photo")} in training, not counted',
        )


def _describe_problems(survey: MeasuredSurvey) -> Iterator[str]:
    """Describe labels that are missing, unexpected or not drawn."""
    table, total = survey.table, len(survey.folder.photos)
    yield from table.notes
    missing = table.drawn - len(table.labeled)
    if missing > 0:
        yield (
            f'{missing} of {table.drawn} drawn photos without a label: the '
            'result holds if they are missing at random, not if they are the '
            'difficult ones'
        )
    if table.not_drawn:
        yield (
            f'{plural(len(table.not_drawn), "label")} of photos that were not '
            f'drawn, not counted (such as {table.not_drawn[0]})'
        )
    other_labels = [*survey.other_labels.values()]
    if other_labels:
        classes = survey.folder.classes
        examples = join_first(
            [
                f'{x}{did_you_mean(x, classes)}'
                for x in dict.fromkeys(other_labels)
            ],
            MAX_NAMES,
        )
        yield (
            f'{plural(len(other_labels), "label")} not among the classes, '
            f'counted as {NONE} ({examples})'
        )
    if table.total not in (None, total):
        yield (
            f'the folder had {table.total} photos at the draw, now {total}: '
            'the result holds if the difference is random'
        )


def _describe_counts(survey: MeasuredSurvey) -> Iterator[str]:
    for count in survey.counts:
        basis = f'{count.labeled} labeled'
        if count.name:
            basis = f'{count.predicted} predicted, {basis}'
        number = describe_count(count.estimate)
        yield f'{count.name or NONE}: {number}; {basis}'


def describe_count(count: Estimated) -> str:
    """Describe an estimated number of photos.

    A rare class, which may be absent, has an upper bound only.
    """
    low, high = round(count.low), round(count.high)
    if low == high:
        return plural(low, 'photo')
    if low == 0:
        return f'at most {plural(high, "photo")}'
    return f'{plural(round(count.value), "photo")} (95% CI {low}-{high})'


def write_counts(survey: MeasuredSurvey, path: Path) -> None:
    """Write a table with one row per class, .csv or .xlsx."""
    rows = []
    for count in survey.counts:
        estimate = count.estimate
        numbers = estimate.value, estimate.low, estimate.high
        row_start = [count.name or NONE, *map(round, numbers)]
        rows.append([*row_start, count.predicted, count.labeled])
    write = write_sheet if path.suffix.lower() == '.xlsx' else write_rows
    write(path, [[*COUNT_COLUMNS], *rows])
