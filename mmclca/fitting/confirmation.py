# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Changes to a model with a confirmation."""

import re
from collections.abc import Collection
from difflib import SequenceMatcher
from typing import Any
from unicodedata import combining, normalize

from mmclca.datasets.photos.spellings import visual_key
from mmclca.errors import Error
from mmclca.languages import text

from .record import FitRecord
from .wording import percent

MIN_RATIO = 0.8  # similarity of two spellings of one name


class ConfirmationError(Error):
    """A probable mistake; nothing was changed.

    Args:
        key (str): Key of the reason: object, problem, found and expected.
        **values: Values of its placeholders.
    """

    def __init__(self, key: str, **values: Any):
        self.key, self.values = key, values
        self.reason = text(key, **values)
        super().__init__(
            f'{self.reason}; nothing was changed; pass force=True to do it '
            'anyway'
        )


def check_name(name: str, classes: Collection[str]) -> None:
    """Raise a :class:`ConfirmationError` if a new class name looks misspelled.

    Names that differ in a number, such as two cultivars, are not similar.
    """
    if name in classes:
        return
    similar = next((x for x in classes if is_similar(name, x)), None)
    if similar is not None:
        raise ConfirmationError(
            'change.similar_name', name=repr(name), similar=repr(similar)
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
            'change.would_fall',
            before=percent(before.accuracy),
            after=percent(after.accuracy),
            low=percent(before.low),
        )
