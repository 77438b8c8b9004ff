# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What naming a photograph takes, beside the whole network."""

from collections.abc import Sequence
from dataclasses import dataclass

from .folder import Facts

# title, unit and name in fit.json
KINDS = (
    ('Computation', 'GMACs', 'gmacs'),
    ('Time in PyTorch', 'ms', 'ms'),
    ('Time in ONNX Runtime', 'ms', 'ms_onnx'),
)


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
