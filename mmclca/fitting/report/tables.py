# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tables of the report: accuracy by class, and cost."""

from collections.abc import Sequence
from dataclasses import dataclass

from .folder import Facts

MOST = 50  # classes of a table


@dataclass(frozen=True)
class ClassRow:
    """A row of the table.

    Args:
        name (str): The class.
        n (int): Its photographs.
        recall (float): The share of them that is named right, 0 to 1.
        low (float): Lower end of the interval.
        high (float): Upper end of the interval.
    """

    name: str
    n: int
    recall: float
    low: float
    high: float


@dataclass(frozen=True)
class ClassTables:
    """The classes of a model.

    Args:
        tables (list[tuple[str, list[ClassRow]]]): Titles, and rows from the
            worst class to the best: all, or the ends of a long list.
        unlisted (int): Classes between these ends.
        unmeasured (list[str]): Classes of which nothing is known.
    """

    tables: list[tuple[str, list[ClassRow]]]
    unlisted: int
    unmeasured: list[str]


def class_tables(per_class: dict[str, dict]) -> ClassTables:
    """Classes in the order of their recall.

    Args:
        per_class (dict): ``n``, ``recall``, ``low`` and ``high`` by class,
            null for a class that was not measured.
    """
    measured = {
        name: facts
        for name, facts in per_class.items()
        if facts['recall'] is not None
    }
    rows = [ClassRow(name, **facts) for name, facts in measured.items()]
    rows.sort(key=lambda row: (row.recall, row.high, row.name))
    unmeasured = [name for name in per_class if name not in measured]
    if len(rows) <= 2 * MOST:
        return ClassTables([('All classes', rows)], 0, unmeasured)
    ends = [
        (f'The {MOST} worst classes', rows[:MOST]),
        (f'The {MOST} best classes', rows[-MOST:]),
    ]
    return ClassTables(ends, len(rows) - 2 * MOST, unmeasured)


# title, unit and name in fit.json
KINDS = (('Computation', 'GMACs', 'gmacs'), ('Time in PyTorch', 'ms', 'ms'))


@dataclass(frozen=True)
class CostRow:
    """A row of the table.

    Args:
        title (str): What is counted.
        unit (str): In what.
        here (float): Of this model.
        full (float): Of the whole network.
    """

    title: str
    unit: str
    here: float
    full: float

    @property
    def share(self) -> float:
        """That of this model as a share of the full one's."""
        return self.here / self.full


def cost_rows(cost: Facts) -> Sequence[CostRow]:
    """What is known of the cost.

    Args:
        cost (Facts): Of ``fit.json``; what is null there is left out.
    """
    rows = [
        CostRow(title, unit, cost[name], cost[f'{name}_full'])
        for title, unit, name in KINDS
    ]
    return [row for row in rows if row.here and row.full]
