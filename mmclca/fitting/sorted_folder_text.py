# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe the accuracy on a folder of sorted photos."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mmclca.utils.messages import join_first

from .accuracy_parts import describe_accuracy
from .console_text import list_rows
from .record import FitRecord
from .record_description import describe_record
from .sorted_folder import FolderTest
from .wording import percent, plural

MAX_PAIRS = 5


@dataclass(frozen=True)
class LabeledLines:
    """Facts about a test of one kind, for screen and page.

    Args:
        label (str): Kind, in one word.
        lines (list[str]): The facts.
    """

    label: str
    lines: list[str]


def folder_test_rows(test: FolderTest) -> list[LabeledLines]:
    """Describe the accuracy, next to the promised one, and the classes."""
    measured, per_class = test.measurement, test.per_class
    number = len(test.record.photos.classes)
    tested = (
        f'{plural(len(test.tested), "photo")} of {len(per_class)} of '
        f'{number} classes'
    )
    accuracy = describe_accuracy(
        measured.accuracy, measured.low, measured.high
    )
    recalls = [
        f'{name}: {recall.describe()} on {plural(recall.n, "photo")}'
        for name, recall in per_class.items()
    ]
    confusions = [
        f'{x.errors} of {plural(x.photos, "photo")} of {x.label} classified '
        f'as {x.prediction}'
        for x in test.confusions[:MAX_PAIRS]
    ]
    rows = [
        LabeledLines('Data', [tested]),
        LabeledLines('Skipped', list(_describe_skipped(test))),
        LabeledLines('Warning', list(_describe_trained(test))),
        LabeledLines('Warning', [test.shift] if test.shift else []),
        LabeledLines(
            'Result', [f'{accuracy} on {plural(measured.n, "photo")}']
        ),
        LabeledLines('Promised', [describe_promise(test.record)]),
        LabeledLines('Recall', recalls),
        LabeledLines('Confused', confusions or ['no classes']),
        LabeledLines('Unknown', list(_describe_unknown(test))),
    ]
    return [x for x in rows if x.lines]


def folder_test_lines(test: FolderTest) -> Iterator[str]:
    """Describe a test in lines for the screen."""
    return format_facts(folder_test_rows(test))


def format_facts(facts: Iterable[LabeledLines]) -> Iterator[str]:
    """Align facts in lines for the screen."""
    for fact in facts:
        yield from list_rows(fact.label, fact.lines)


def describe_promise(record: FitRecord) -> str:
    """Describe the accuracy that fit reported, and for which photos."""
    described = describe_record(record)
    if described.why_unmeasured:
        return f'nothing: {described.why_unmeasured}'
    return described.claim


def _describe_skipped(test: FolderTest) -> Iterator[str]:
    """Describe photos and folders that were not tested."""
    photos = test.photos
    if photos.unknown:
        names = join_first(photos.unknown, 3)
        yield (
            f'{plural(sum(photos.unknown.values()), "photo")} in '
            f'{plural(len(photos.unknown), "folder")} without a class of the '
            f'model ({names})'
        )
    if photos.empty:
        number = plural(len(photos.empty), 'folder')
        yield f'{number} without photos ({join_first(photos.empty, 3)})'
    if photos.without_folder:
        number = plural(photos.without_folder, 'photo')
        yield f'{number} not in a class folder'
    unread = [x.result for x in test.tested if not x.is_readable]
    if unread:
        first = unread[0]
        yield (
            f'{len(unread)} unreadable (such as {first["image"]}: '
            f'{first["error"]})'
        )


def _describe_trained(test: FolderTest) -> Iterator[str]:
    """Warn of photos that the model was trained on."""
    trained = sum(photo.in_training for photo in test.tested)
    if trained:
        all_were = all(photo.in_training for photo in test.counted)
        effect = (
            'the result says nothing about new photos'
            if all_were
            else 'they are not counted'
        )
        were = 'photo was' if trained == 1 else 'photos were'
        yield f'{trained} {were} in training: {effect}'


def _describe_unknown(test: FolderTest) -> Iterator[str]:
    """Compare the share of false alarms with the promised one."""
    counted = test.counted
    if any(photo.result['known'] is None for photo in counted):
        return
    flagged = sum(photo.result['known'] is False for photo in counted)
    threshold = test.record.threshold
    promised = ''
    if threshold is not None and threshold.false_alarms is not None:
        promised = f', {percent(threshold.false_alarms)} promised'
    yield (
        f'{flagged} of {plural(len(counted), "photo")} flagged by mistake '
        f'({percent(flagged / len(counted))}{promised})'
    )
