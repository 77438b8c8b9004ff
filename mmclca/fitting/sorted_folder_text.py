# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe the accuracy on a folder of sorted photos."""

from collections.abc import Iterator

from mmclca.languages import text
from mmclca.utils.messages import join_first

from .accuracy_parts import describe_accuracy
from .console_text import format_facts
from .record import FitRecord
from .record_description import describe_record
from .sorted_folder import FolderTest
from .wording import LabeledLines, count_classes, count_photos, percent

MAX_PAIRS = 5


def folder_test_rows(test: FolderTest) -> list[LabeledLines]:
    """Describe the accuracy, next to the promised one, and the classes."""
    measured, per_class = test.measurement, test.per_class
    number = len(test.record.photos.classes)
    tested = text(
        'test.photos',
        photos=count_photos(len(test.tested)),
        tested=len(per_class),
        classes=count_classes(number),
    )
    accuracy = describe_accuracy(
        measured.accuracy, measured.low, measured.high
    )
    recalls = [
        text(
            'test.recall_of',
            name=name,
            recall=recall.describe(),
            photos=count_photos(recall.n),
        )
        for name, recall in per_class.items()
    ]
    confusions = [
        text(
            'test.confusion',
            errors=x.errors,
            number=x.photos,
            label=x.label,
            prediction=x.prediction,
        )
        for x in test.confusions[:MAX_PAIRS]
    ]
    result = text(
        'test.accuracy', accuracy=accuracy, photos=count_photos(measured.n)
    )
    warning = text('photos.warning')
    rows = [
        LabeledLines(text('test.data'), [tested]),
        LabeledLines(text('photos.skipped'), list(_describe_skipped(test))),
        LabeledLines(warning, list(_describe_trained(test))),
        LabeledLines(warning, [test.shift] if test.shift else []),
        LabeledLines(text('test.result'), [result]),
        LabeledLines(text('test.promised'), [describe_promise(test.record)]),
        LabeledLines(text('test.recall'), recalls),
        LabeledLines(
            text('test.confused'), confusions or [text('test.no_confusion')]
        ),
        LabeledLines(text('test.unknown'), list(_describe_unknown(test))),
    ]
    return [x for x in rows if x.lines]


def folder_test_lines(test: FolderTest) -> Iterator[str]:
    """Describe a test in lines for the screen."""
    return format_facts(folder_test_rows(test))


def describe_promise(record: FitRecord) -> str:
    """Describe the accuracy that fit reported, and for which photos."""
    described = describe_record(record)
    if described.why_unmeasured:
        return text('test.no_promise', reason=described.why_unmeasured)
    return described.claim


def _describe_skipped(test: FolderTest) -> Iterator[str]:
    """Describe photos and folders that were not tested."""
    photos = test.photos
    if photos.unknown:
        yield text(
            'test.no_class',
            photos=count_photos(sum(photos.unknown.values())),
            folders=text('test.folders', number=len(photos.unknown)),
            names=join_first(photos.unknown, 3),
        )
    if photos.empty:
        yield text(
            'test.empty',
            folders=text('test.folders', number=len(photos.empty)),
            names=join_first(photos.empty, 3),
        )
    if photos.without_folder:
        number = count_photos(photos.without_folder)
        yield text('test.without_folder', photos=number)
    unread = [x.result for x in test.tested if not x.is_readable]
    if unread:
        first = unread[0]
        yield text(
            'test.unreadable',
            number=len(unread),
            name=first['image'],
            problem=first['error'],
        )


def _describe_trained(test: FolderTest) -> Iterator[str]:
    """Warn of photos that the model was trained on."""
    trained = sum(photo.in_training for photo in test.tested)
    if trained:
        all_were = all(photo.in_training for photo in test.counted)
        key = 'test.says_nothing' if all_were else 'test.not_counted'
        yield text('test.trained', number=trained, effect=text(key))


def _describe_unknown(test: FolderTest) -> Iterator[str]:
    """Compare the share of false alarms with the promised one."""
    counted = test.counted
    if any(photo.result['known'] is None for photo in counted):
        return
    flagged = sum(photo.result['known'] is False for photo in counted)
    threshold = test.record.threshold
    share = percent(flagged / len(counted))
    if threshold is not None and threshold.false_alarms is not None:
        promised = percent(threshold.false_alarms)
        share = text('test.flagged_promised', share=share, promised=promised)
    yield text(
        'test.flagged', flagged=flagged, number=len(counted), share=share
    )
