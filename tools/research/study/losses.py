# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Values for the page: accuracy lost by reducers, and correlations with it."""

from dataclasses import dataclass

import numpy as np
from frozen import DEPTH
from scipy.stats import spearmanr
from tables import select

from .choice import select_affordable
from .early_layers import NUM_EARLY
from .page_values import Report
from .readings import ALL
from .rows import NONE, SIMILARITIES

REDUCED = range(NUM_EARLY + 1, DEPTH)  # layers with fewer tokens
# These merge at most half of the tokens per layer: below keep rate 0.5, they
# cost more than other methods.
HALVING = 'ToMe', 'MCTF', 'PPT', 'PiToMe'


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

    def compare_best(self, rate):
        """Yield the best reducer per ViT, its best rival and the difference.

        The rival has no reducer and costs at most 1% more: the same network
        on smaller photos or with fewer layers.
        """
        reduced = select_reduced(self.report.usable, rate)
        for network, rows in reduced.groupby('network', sort=False):
            best = rows.loc[rows.difference.idxmax()]
            keys = dict(network=network, method=NONE, features=ALL)
            rivals = select(self.report.usable, keys)
            rivals = select_affordable(rivals, best.gmacs)
            rival = rivals.loc[rivals.difference.idxmax()]
            yield best, rival, self.report.compare(best, rival)

    def summarize(self, rate, network):
        """Return the losses of methods with equal cost in a network.

        ``num_better`` of them are more accurate than the network on smaller
        photos, with its accuracy interpolated at the GMACs of the method.
        """
        rows = select_equal_cost(self.report.usable, rate)
        rows = rows[rows.network == network]
        keys = dict(network=network, method=NONE, features=ALL, depth=DEPTH)
        full = select(self.report.usable, keys).sort_values('gmacs')
        smaller = np.interp(rows.gmacs, full.gmacs, full['mean'])
        return dict(
            count=len(rows),
            gmacs=rows.gmacs.median(),
            smallest=rows.difference.max(),
            median=rows.difference.median(),
            largest=rows.difference.min(),
            num_better=(rows['mean'] > smaller).sum(),
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

    def associate(self, rate, network):
        """Return correlations with the lost accuracy over methods.

        Spearman's correlation over methods with equal cost, without untrained
        ones, between the difference to the full network (all layers) and the
        agreement, or the mean similarity over the layers with fewer tokens.
        Layers with too few tokens in a row are left out.
        """
        rows = select_equal_cost(self.report.usable, rate)
        rows = rows[rows.network == network]
        measures = dict(agreement=rows.agreement)
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


def select_equal_cost(rows, rate):
    """Return these networks, without methods that keep more tokens."""
    rows = select_reduced(rows, rate)
    return rows if rate >= 0.5 else rows[~rows.method.isin(HALVING)]


def values(report):
    """Return the values for the template."""
    return dict(losses=Losses(report), reduced=REDUCED)
