# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Values for the page: what predicts the accuracy that a reducer loses."""

from dataclasses import dataclass

from frozen import DEPTH
from scipy.stats import spearmanr
from tables import select

from .choice import select_affordable
from .early_layers import NUM_EARLY
from .page_values import Report
from .readings import ALL
from .rows import NONE, SIMILARITIES

REDUCED = range(NUM_EARLY + 1, DEPTH)  # layers with fewer tokens


@dataclass(frozen=True)
class Losses:
    """Differences in accuracy and similarities to the full network.

    Args:
        report (Report): All rows.
    """

    report: Report

    def find_best(self, rate):
        """Return the reduced network with the best difference at 224 px."""
        rows = select_reduced(self.report.usable, rate)
        return rows.loc[rows.difference.idxmax()]

    def find_rival(self, row):
        """Return the best way without a reducer at the cost of a row.

        The same network on smaller photos or with fewer layers.
        """
        keys = dict(network=row.network, method=NONE, features=ALL)
        rows = select(self.report.usable, keys)
        rows = select_affordable(rows, row.gmacs)
        return rows.loc[rows.difference.idxmax()]

    def compare_best(self, rate):
        """Yield the best reducer per ViT, and the best rival at its cost."""
        reduced = select_reduced(self.report.usable, rate)
        for _, rows in reduced.groupby('network', sort=False):
            best = rows.loc[rows.difference.idxmax()]
            yield best, self.find_rival(best)

    def summarize(self, rate):
        """Return how much methods lose, and how many are better than rivals.

        Over all methods and networks, without untrained methods.
        """
        rows = select_reduced(self.report.usable, rate)
        gains = [
            row['mean'] - self.find_rival(row)['mean']
            for _, row in rows.iterrows()
        ]
        return dict(
            count=len(rows),
            smallest=rows.difference.max(),
            median=rows.difference.median(),
            largest=rows.difference.min(),
            num_better=sum(gain > 0 for gain in gains),
        )

    def list_similarities(self, rate):
        """Return mean differences and similarities by method."""
        rows = select_reduced(self.report.ridge, rate)
        columns = [f'{x}_{y}' for x in SIMILARITIES for y in REDUCED]
        means = rows.groupby('method')[['difference', *columns]].mean()
        means = means.sort_values('difference', ascending=False)
        return dict(
            rows=means.to_dict('index'), networks=rows.network.nunique()
        )

    def associate(self, rate):
        """Return correlations with the lost accuracy over methods.

        Spearman's correlation over all trained methods and networks between
        the difference to the full network (all layers) and the mean similarity
        over the layers with fewer tokens, or the agreement. Layers with too
        few tokens in a row are left out.
        """
        rows = select_reduced(self.report.usable, rate)
        measures = dict(agreement=rows.agreement, GMACs=rows.gmacs)
        for part in SIMILARITIES:
            columns = [f'{part}_{layer}' for layer in REDUCED]
            complete = rows[columns].dropna(axis='columns')
            measures[part] = complete.mean(axis='columns')
        correlations = {
            name: spearmanr(values, rows.difference).statistic
            for name, values in measures.items()
        }
        return dict(correlations, count=len(rows))


def select_reduced(rows, rate):
    """Return the reduced networks with a keep rate, 224 px, all layers."""
    rows = rows[(rows.keep_rate == rate) & (rows.img_size == 224)]
    return rows[(rows.method != NONE) & (rows.features == ALL)]


def values():
    """Return the values for the template."""
    return dict(losses=Losses(Report.read()), reduced=REDUCED)
