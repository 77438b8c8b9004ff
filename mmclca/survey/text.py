# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe a survey on the screen, and write its counts."""

from collections.abc import Iterator
from pathlib import Path

from mmclca.fitting.accuracy_parts import describe_accuracy
from mmclca.fitting.console_text import format_facts, row
from mmclca.fitting.record import FitRecord
from mmclca.fitting.sorted_folder_text import describe_promise
from mmclca.fitting.wording import LabeledLines, count_photos, plural
from mmclca.languages import text
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
    labeled = count_photos(len(survey.table.labeled))
    result = text('survey.on_these', accuracy=described)
    rows = [
        *_folder_rows(survey.folder),
        LabeledLines(text('survey.labels'), [labeled]),
        LabeledLines(text('photos.warning'), list(_describe_problems(survey))),
        LabeledLines(text('test.result'), [result]),
        LabeledLines(text('test.promised'), [describe_promise(record)]),
        LabeledLines(text('survey.count'), list(_describe_counts(survey))),
    ]
    return [x for x in rows if x.lines]


def _folder_rows(folder: ClassifiedFolder) -> list[LabeledLines]:
    """Describe classified and omitted photos."""
    skipped = []
    if folder.unreadable:
        path, reason = next(iter(folder.unreadable.items()))
        unreadable = text(
            'survey.unreadable',
            photos=count_photos(len(folder.unreadable)),
            name=path,
            problem=reason,
        )
        skipped.append(unreadable)
    if folder.in_training:
        number = count_photos(folder.in_training)
        skipped.append(text('survey.in_training', photos=number))
    number = count_photos(len(folder.photos))
    data = text('survey.folder', photos=number, folder=folder.path)
    rows = [
        LabeledLines(text('test.data'), [data]),
        LabeledLines(text('photos.skipped'), skipped),
    ]
    return [x for x in rows if x.lines]


def _describe_problems(survey: MeasuredSurvey) -> Iterator[str]:
    """Describe labels that are missing, unexpected or not drawn."""
    table, total = survey.table, len(survey.folder.photos)
    yield from map(str, table.notes)
    missing = table.drawn - len(table.labeled)
    if missing > 0:
        yield text('survey.missing', missing=missing, drawn=table.drawn)
    if table.not_drawn:
        yield text(
            'survey.not_drawn',
            labels=text('survey.labels_of', number=len(table.not_drawn)),
            name=table.not_drawn[0],
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
        yield text(
            'survey.other_labels',
            labels=text('survey.labels_of', number=len(other_labels)),
            none=text('survey.none'),
            names=examples,
        )
    if table.total not in (None, total):
        yield text('survey.other_total', before=table.total, now=total)


def _describe_counts(survey: MeasuredSurvey) -> Iterator[str]:
    for count in survey.counts:
        key = 'survey.basis_predicted' if count.name else 'survey.basis'
        basis = text(key, predicted=count.predicted, labeled=count.labeled)
        yield text(
            'survey.count_of',
            name=count.name or text('survey.none'),
            estimate=describe_count(count.estimate),
            basis=basis,
        )


def describe_count(count: Estimated) -> str:
    """Describe an estimated number of photos.

    A rare class, which may be absent, has an upper bound only.
    """
    low, high = round(count.low), round(count.high)
    if low == high:
        return count_photos(low)
    if low == 0:
        return text('survey.at_most', photos=count_photos(high))
    photos = count_photos(round(count.value))
    return text('survey.interval', photos=photos, low=low, high=high)


def write_counts(survey: MeasuredSurvey, path: Path) -> None:
    """Write a table with one row per class, .csv or .xlsx."""
    rows = []
    for count in survey.counts:
        estimate = count.estimate
        numbers = estimate.value, estimate.low, estimate.high
        row_start = [count.name or NONE, *map(round, numbers)]
        rows.append([*row_start, count.predicted, count.labeled])
    write_spreadsheet(path, [[*COUNT_COLUMNS], *rows])
