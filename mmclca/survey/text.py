# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a survey on the screen, and write its counts."""

from collections.abc import Iterator
from pathlib import Path

from mmclca.fitting.accuracy_parts import describe_accuracy
from mmclca.fitting.console_text import row
from mmclca.fitting.record import FitRecord
from mmclca.fitting.sorted_folder_text import (
    LabeledLines,
    describe_promise,
    format_facts,
)
from mmclca.fitting.wording import plural
from mmclca.utils.messages import did_you_mean, join_first
from mmclca.utils.spreadsheets import write_spreadsheet

from .classify import ClassifiedFolder
from .drawing import DrawnSurvey
from .estimate import Estimated
from .measuring import MeasuredSurvey

NONE = 'none of the classes'
EXPECTED = NONE, 'none'  # labels of photos without a class
MAX_NAMES = 5
COUNT_COLUMNS = ('class', 'photos', 'low', 'high', 'predicted', 'labeled')


def drawn_lines(survey: DrawnSurvey) -> Iterator[str]:
    """Describe the drawn photos, and how to label them."""
    drawn = survey.drawn
    strata = plural(
        len({photo.stratum for photo in drawn}), 'stratum', 'strata'
    )
    yield from format_facts(_folder_rows(survey.folder))
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


def measured_lines(survey: MeasuredSurvey, record: FitRecord) -> Iterator[str]:
    """Describe accuracy and class counts in lines for the screen."""
    return format_facts(survey_rows(survey, record))


def survey_rows(
    survey: MeasuredSurvey, record: FitRecord
) -> list[LabeledLines]:
    """Describe accuracy and class counts, next to the promised accuracy.

    Args:
        survey (MeasuredSurvey): The survey.
        record (FitRecord): Record of the model.

    Returns:
        list[LabeledLines]: Facts, for screen and page.
    """
    accuracy = survey.estimate.accuracy
    described = describe_accuracy(accuracy.value, accuracy.low, accuracy.high)
    labeled = plural(len(survey.table.labeled), 'photo')
    rows = [
        *_folder_rows(survey.folder),
        LabeledLines('Labels', [labeled]),
        LabeledLines('Warning', list(_describe_problems(survey))),
        LabeledLines('Result', [f'{described} on these photos']),
        LabeledLines('Promised', [describe_promise(record)]),
        LabeledLines('Count', list(_describe_counts(survey))),
    ]
    return [x for x in rows if x.lines]


def _folder_rows(folder: ClassifiedFolder) -> list[LabeledLines]:
    """Describe classified and omitted photos."""
    number = plural(len(folder.photos), 'photo')
    skipped = []
    if folder.unreadable:
        path, reason = next(iter(folder.unreadable.items()))
        skipped.append(
            f'{plural(len(folder.unreadable), "photo")} unreadable (such as '
            f'{path}: {reason})'
        )
    if folder.in_training:
        skipped.append(f'{plural(folder.in_training, "photo")} in training')
    rows = [
        LabeledLines('Data', [f'{number} in {folder.path}']),
        LabeledLines('Skipped', skipped),
    ]
    return [x for x in rows if x.lines]


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
    other_labels = [
        label
        for label in survey.other_labels.values()
        if label.casefold() not in EXPECTED
    ]
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
    write_spreadsheet(path, [[*COUNT_COLUMNS], *rows])
