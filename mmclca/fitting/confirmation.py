# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Changes to a model with a confirmation."""

import re
from collections.abc import Collection
from difflib import SequenceMatcher
from unicodedata import combining, normalize

from mmclca.datasets.photos.spellings import visual_key
from mmclca.errors import Error

from .record import FitRecord
from .wording import percent

MIN_RATIO = 0.8  # similarity of two spellings of one name


class ConfirmationError(Error):
    """A probable mistake; nothing was changed.

    Args:
        reason (str): Object, problem, found and expected values.
    """

    def __init__(self, reason: str):
        super().__init__(
            f'{reason}; nothing was changed; pass force=True to do it anyway'
        )
        self.reason = reason


def check_name(name: str, classes: Collection[str]) -> None:
    """Raise a :class:`ConfirmationError` if a new class name looks misspelled.

    Names that differ in a number, such as two cultivars, are not similar.
    """
    if name in classes:
        return
    similar = next((x for x in classes if is_similar(name, x)), None)
    if similar is not None:
        raise ConfirmationError(
            f'the new class {name!r} resembles the existing class {similar!r};'
            f' if the photos belong to it, give the name {similar!r}'
        )


def is_similar(name: str, other: str) -> bool:
    """Return whether two names may be one class, misspelled.

    Accents are ignored.
    """
    name, other = (
        ''.join(
            character
            for character in normalize('NFKD', visual_key(x))
            if not combining(character)
        )
        for x in (name, other)
    )
    if re.findall(r'\d+', name) != re.findall(r'\d+', other):
        return False
    return SequenceMatcher(None, name, other).ratio() >= MIN_RATIO


def check_accuracy(previous: FitRecord, record: FitRecord) -> None:
    """Raise a :class:`ConfirmationError` if the accuracy has dropped too far.

    The accuracy of the linear probe may not fall below the previous 95%
    interval. If only one record has an accuracy across days, those on the
    same days are compared.
    """
    before, after = previous.estimate, record.estimate
    if previous.is_across_days != record.is_across_days:
        before = previous.same_days or before
        after = record.same_days or after
    if before.low is None or after.accuracy is None:
        return
    if after.accuracy < before.low:
        raise ConfirmationError(
            f'the accuracy would fall from {percent(before.accuracy)} '
            f'to {after.accuracy:.1%}, below its 95% interval (from '
            f'{before.low:.1%}); check the photos and the class name'
        )
