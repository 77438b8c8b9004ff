# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whether training pays, by what it did on sets where it was measured."""

from typing import NamedTuple

import numpy as np

# of the errors of the probe that training must be expected to remove
WORTH = 0.05


class Measured(NamedTuple):
    """A set on which the probe and what was trained on from it were compared.

    Args:
        keep_rate (float): Of the model.
        probe (float): Accuracy of the probe on test images, 0 to 1.
        trained (float): Of the model that was trained on from it.
    """

    keep_rate: float
    probe: float
    trained: float

    @property
    def removed(self) -> float:
        """Share of the probe's errors that training removed."""
        return (self.trained - self.probe) / (1 - self.probe)


# DeiT-Tiny, three images a class: leaf40_white, five draws; 38 diseases of
# leaves, by a probe of layers 2, 5, 8 and 11; 24 drawn cultivars
# (synthetic_leaves.py with --classes 24 --difference 0.6 --seed 3), the last
# two with one draw
MEASURED = (
    Measured(0.1, 0.875, 0.922),
    Measured(0.25, 0.948, 0.945),
    Measured(0.5, 0.968, 0.950),
    Measured(0.1, 0.57, 0.686),
    Measured(0.5, 0.72, 0.773),
    Measured(0.25, 0.326, 0.601),
    Measured(0.5, 0.451, 0.604),
)


def errors_removed(accuracy: float, keep_rate: float) -> float:
    """Share of the probe's errors that training is expected to remove.

    Between the sets that were measured at the nearest keep rates, by the
    accuracy of the probe.

    Args:
        accuracy (float): Of the probe on photographs that it has not seen.
        keep_rate (float): Of the model.
    """
    rates = sorted({one.keep_rate for one in MEASURED})
    by_rate = [_at(accuracy, rate) for rate in rates]
    return float(np.interp(keep_rate, rates, by_rate))


def _at(accuracy: float, keep_rate: float) -> float:
    known = sorted(one for one in MEASURED if one.keep_rate == keep_rate)
    probes = [one.probe for one in known]
    return float(np.interp(accuracy, probes, [one.removed for one in known]))
