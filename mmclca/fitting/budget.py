# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Maximum cost per photo."""

import re
from math import inf
from typing import NamedTuple

from mmclca.errors import Error

NO_BUDGET = 'best'  # no cost limit
COST_UNITS = {'gmacs': 'GMACs', 'ms': 'ms'}


class Budget(NamedTuple):
    """Maximum cost, in GMACs or in milliseconds."""

    amount: float
    unit: str


class BudgetError(Error):
    """No candidate is within the budget."""


def parse_budget(budget: str) -> Budget:
    """Parse a budget such as ``0.5GMACs`` or ``20ms``.

    'best' gives infinite GMACs; anything else raises an ``Error``.
    """
    budget = budget.strip().lower()
    if budget == NO_BUDGET:
        return Budget(inf, 'GMACs')
    match = re.fullmatch(r'(\d+\.?\d*|\.\d+) ?([a-z]+)', budget)
    if not match or match[2] not in COST_UNITS or not float(match[1]):
        raise Error(
            f'budget {budget!r} is invalid: expected a number above 0 with '
            f'its unit, such as 0.5GMACs or 20ms, or {NO_BUDGET}'
        )
    return Budget(float(match[1]), COST_UNITS[match[2]])
