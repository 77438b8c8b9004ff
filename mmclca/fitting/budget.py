# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The most accurate candidate that a budget allows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from .candidates import Candidate

UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


@dataclass(frozen=True)
class Budget:
    """What an image may cost.

    Args:
        amount (float): At most.
        unit (str): 'GMACs' (1e9 multiply-accumulates) or 'ms' (at batch 1,
            on this machine).
    """

    amount: float
    unit: str

    def __str__(self) -> str:
        return f'{self.amount:g}{self.unit}'


def parse_budget(text: str) -> Budget:
    """Read a budget such as ``0.5GMACs`` or ``20ms``.

    Raises:
        ValueError: If it is none.
    """
    found = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', text.strip().lower())
    if not found or found[2] not in UNITS or not float(found[1]):
        raise ValueError(
            f'budget {text!r}: a number above 0 with its unit, such as '
            '0.5GMACs or 20ms'
        )
    return Budget(float(found[1]), UNITS[found[2]])


def choose(
    candidates: Sequence[Candidate],
    budget: Budget | None,
    costs: Callable[[str], list[float]],
) -> Candidate:
    """The first candidate that a budget allows.

    Args:
        candidates (Sequence[Candidate]): The most accurate one first.
        budget (Budget, optional): What an image may cost; None: the first
            candidate.
        costs (Callable): Gives the cost of each candidate in a unit.

    Raises:
        ValueError: If none is that cheap; names the cheapest.
    """
    if budget is None:
        return candidates[0]
    measured = costs(budget.unit)
    pairs = zip(candidates, measured, strict=True)
    for candidate, cost in pairs:
        if cost <= budget.amount:
            return candidate
    least = min(measured)
    cheapest = candidates[measured.index(least)]
    # rounded up, so that it can be given as it is printed
    enough = ceil(1000 * least) / 1000
    raise ValueError(
        f'budget {budget}: no model is that cheap; the least is {enough:g} '
        f'{budget.unit} ({cheapest.words()})'
    )
