# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Describe changes of a model, for screen and page."""

from collections.abc import Iterator, Sequence

from mmclca.languages import text

from .record import FitRecord
from .record_description import describe_record, name_tested
from .wording import LabeledLines, count_classes, count_photos, percent


def describe_classes(
    previous: FitRecord, record: FitRecord, names: Sequence[str]
) -> Iterator[LabeledLines]:
    """Compare a model before and after photos of classes were changed.

    Args:
        previous (FitRecord): Record before the change.
        record (FitRecord): Record after it.
        names (Sequence[str]): Changed classes.
    """
    numbers = [len(x.photos.classes) for x in (previous, record)]
    yield _name('classes', ' -> '.join(map(str, numbers)))
    for name in names:
        yield _describe_class(previous, record, name)
    is_alike = previous.is_across_days == record.is_across_days
    pair = previous, record
    is_named = not (is_alike and all(x.is_representative for x in pair))
    before, after = (_describe_accuracy(x, is_named) for x in pair)
    line = text('change.before_after', before=before, after=after)
    yield _name('accuracy', line)


def describe_rename(name: str, new: str) -> LabeledLines:
    """Describe a class with another name."""
    return _name('renamed', text('change.names', name=name, new=new))


def describe_restored(record: FitRecord) -> LabeledLines:
    """Describe a previous model that is the present one again."""
    classes = count_classes(len(record.photos.classes))
    accuracy = describe_record(record).result.summary
    line = text('change.previous', classes=classes, accuracy=accuracy)
    return _name('restored', line)


def describe_known_photos(names: str) -> LabeledLines:
    """Warn if all photos of some classes were added before."""
    line = text('change.no_new_photos', names=names)
    return LabeledLines(text('photos.warning'), [line])


def _name(kind: str, line: str) -> LabeledLines:
    return LabeledLines(text(f'change.{kind}'), [line])


def _describe_class(
    previous: FitRecord, record: FitRecord, name: str
) -> LabeledLines:
    """Compare the photos of a class, with its present recall."""
    count = previous.photos.counts.get(name, 0)
    if name not in record.photos.classes:
        photos = count_photos(count)
        line = text('change.class_gone', name=name, photos=photos)
        return _name('removed', line)
    recall = record.estimate.per_class[name]
    line = text(
        'change.class_now',
        name=name,
        photos=count_photos(recall.n),
        count=count,
        recall=recall.describe(),
    )
    return _name('changed', line)


def _describe_accuracy(record: FitRecord, is_named: bool) -> str:
    """Write an accuracy, with its photos if they are to be named."""
    accuracy = percent(record.estimate.accuracy)
    classes = count_classes(len(record.photos.classes))
    if not is_named:
        return text('change.measured', accuracy=accuracy, classes=classes)
    return text(
        'change.measured_on',
        accuracy=accuracy,
        photos=name_tested(record),
        classes=classes,
    )
