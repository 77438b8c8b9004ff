# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Choose a network per cost: without the tested dataset, or in hindsight.

The rule for candidates of ``fit``: the best mean over the other datasets, and
never more than ``MAX_LOSS`` points below the best linear classifier that users
train on the full network.
"""

from dataclasses import dataclass

import numpy as np

MAX_LOSS = 4
TOLERANCE = 1.01  # times the budget, as in fit


@dataclass(frozen=True)
class Options:
    """Rows to choose from.

    Args:
        accuracies (ndarray): In percent, (rows, datasets).
        losses (ndarray): Points below the best linear classifier,
            (rows, datasets).
    """

    accuracies: np.ndarray
    losses: np.ndarray

    def choose(self, columns, max_loss=np.inf):
        """Return the best row on some datasets, None if all lose more."""
        means = self.accuracies[:, columns].mean(axis=1)
        is_allowed = self.losses[:, columns].max(axis=1) <= max_loss
        if not is_allowed.any():
            return None
        return int(np.where(is_allowed, means, -np.inf).argmax())

    def leave_out(self, max_loss=np.inf):
        """Return the chosen row per dataset, from the other datasets."""
        every = np.arange(self.accuracies.shape[1])
        return [self.choose(every[every != x], max_loss) for x in every]

    def get_deployed(self, max_loss=np.inf):
        """Return the accuracy per dataset for the rows from ``leave_out``.

        NaN if no row follows the rule.
        """
        return np.array(
            [
                np.nan if row is None else self.accuracies[row, dataset]
                for dataset, row in enumerate(self.leave_out(max_loss))
            ]
        )

    def get_oracle(self):
        """Return the best accuracy per dataset."""
        return self.accuracies.max(axis=0)


def select_affordable(table, budget):
    """Return the rows within a budget in GMACs."""
    return table[table.gmacs <= TOLERANCE * budget]


def make_options(rows, names, users):
    """Return the :class:`Options` among rows.

    ``users`` has the accuracy with users' best linear classifier: networks as
    index, datasets as columns.
    """
    accuracies = rows[names].to_numpy(float)
    best = users.loc[rows.network, names].to_numpy(float)
    return Options(accuracies, best - accuracies)
