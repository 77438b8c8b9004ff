# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Values for the page: tables, choices and associations from the rows."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from frozen import DEPTH
from tables import half_width, read, read_machine, select

from .choice import MAX_LOSS, make_options, select_affordable
from .networks import GRID, Network, list_networks
from .readings import ALL, AVERAGES, COUNT, FIT, LAST
from .rows import NONE, STUDY, find_full, identify
from .titles import VITS, name_group, name_row


@dataclass(frozen=True)
class Report:
    """All rows, and summaries.

    Args:
        table (DataFrame): All rows.
    """

    table: pd.DataFrame

    @classmethod
    def read(cls):
        """Read the stored rows."""
        return cls(read(STUDY))

    @property
    def names(self):
        """Datasets with a column."""
        return [x for x in GRID['datasets'] if x in self.table]

    @property
    def ridge(self):
        """Rows with ridge regression on all layers or the last one."""
        rows = select(self.table, dict(classifier='ridge', count=COUNT))
        return rows[rows.features.isin([ALL, LAST])]

    @property
    def usable(self):
        """Rows in ``ridge`` without parameters that need training."""
        rows = self.ridge
        return rows[(rows.untrained == 0) & (rows.random == 0)]

    @property
    def fitted(self):
        """Rows with the classifier in ``fit``."""
        return select(self.table, dict(classifier=FIT))

    def compare(self, row, other):
        """Return the mean difference of two rows, and its 95% interval.

        Rows are paired by dataset.
        """
        gains = (row[self.names] - other[self.names]).astype(float)
        mean, half = gains.mean(), half_width(gains)
        return dict(mean=mean, low=mean - half, high=mean + half)

    def count_missing(self):
        """Count missing networks, by group."""
        networks = list_networks()
        missing = [
            name_group(x)
            for x in networks
            if select(self.table, identify(x)).empty
        ]
        groups = dict.fromkeys(map(name_group, networks), 0)
        keys = [identify(x) for x in networks if x.is_candidate]
        is_missing = [select(self.fitted, key).empty for key in keys]
        counts = {x: missing.count(x) for x in groups}
        return counts | {'classifier of `fit`': sum(is_missing)}

    def list_methods(self, rate):
        """List the methods at a keep rate, the most accurate first.

        Each is a dict with a row, or None, by network and features.
        """
        rows = self.ridge
        rows = rows[(rows.keep_rate == rate) & (rows.img_size == 224)]
        rows = rows[rows.method != NONE]
        methods = [
            dict(
                method=method,
                any=group.iloc[0],
                rows={
                    (row.network, row.features): row
                    for _, row in group.iterrows()
                },
                gain=group[group.features == ALL].difference.mean(),
            )
            for method, group in rows.groupby('method')
        ]
        return sorted(methods, key=lambda x: -x['gain'])

    def get_full(self):
        """Return the full ViTs by network and features."""
        rows = self.ridge[self.ridge.method == NONE]
        rows = rows[(rows.img_size == 224) & (rows.depth == DEPTH)]
        keys = zip(rows.network, rows.features, strict=True)
        return dict(zip(keys, rows.itertuples(), strict=True))

    def compare_rule(self, rows):
        """Return the choice by the rule and without it, per budget."""
        choices = self.choose(rows, MAX_LOSS), self.choose(rows)
        pairs = zip(*choices, strict=True)
        return [pair for pair in pairs if pair[0]['group'] == 'any']

    def list_counts(self):
        """List rows by photos per class: a dict per network.

        For full ViTs and the first keep rate, 224 px.
        """
        rows = select(self.table, dict(classifier='ridge', features=ALL))
        rows = rows[(rows.img_size == 224) & (rows.depth == DEPTH)]
        counts = [COUNT, *GRID['counts']]
        groups = rows.groupby(['network', 'method', 'keep_rate'], sort=False)
        return [
            group.set_index('count', drop=False).loc[sorted(counts)]
            for _, group in groups
            if {*counts} <= {*group['count']}
        ]

    def list_rivals(self):
        """List full networks as pairs: all layers and the last.

        ViTs at each size, then with fewer layers, then CNNs.
        """
        rows = self.ridge[self.ridge.method == NONE]
        is_vit = rows.network.isin(VITS)
        keys = ['network', 'img_size', 'depth']
        parts = [
            rows[is_vit & (rows.depth == DEPTH)],
            rows[is_vit & (rows.depth < DEPTH)],
            rows[~is_vit],
        ]
        return [
            [x.set_index('features', drop=False).loc[y] for y in (ALL, LAST)]
            for part in parts
            for _, x in part.groupby(keys, sort=False)
        ]

    def find_users(self):
        """Return users' best accuracy by network and dataset.

        The best linear classifier on the full network: on CLS and averages,
        in a CNN on the last stage or all stages. It is selected on the test
        photos.
        """
        names = dict(zip(self.table.network, self.table.network, strict=True))
        best = {}
        for network in names:
            keys = dict(network=network, depth=DEPTH, count=COUNT)
            rows = select(self.table, keys)
            rows = rows[(rows.method == NONE) & (rows.classifier != FIT)]
            rows = rows[rows.img_size == largest_size(network)]
            if network in VITS:
                rows = rows[rows.features.isin([LAST, *AVERAGES])]
            best[network] = rows[self.names].max()
        return pd.DataFrame(best).T

    def get_groups(self, rows):
        """Return rows to choose from, by group."""
        is_vit = rows.network.isin(VITS)
        is_full = rows.method == NONE
        is_free = rows.license != 'research only'
        return {
            'token reduction': rows[~is_full],
            'smaller photos': rows[is_full & is_vit & (rows.depth == DEPTH)],
            'fewer layers': rows[is_full & is_vit & (rows.img_size == 224)],
            'CNN': rows[~is_vit],
            'any': rows,
            'any, free license': rows[is_free],
        }

    def choose(self, rows, max_loss=np.inf):
        """Yield the choice per budget and group, if there is a row."""
        users = self.find_users()
        for group, candidates in self.get_groups(rows).items():
            for budget in GRID['budgets']:
                affordable = select_affordable(candidates, budget)
                options = make_options(affordable, self.names, users)
                if len(affordable):
                    columns = dict(group=group, budget=budget)
                    yield describe_choice(
                        affordable, options, columns, max_loss
                    )


def describe_choice(rows, options, columns, max_loss):
    """Return a chosen row with its accuracies.

    ``row`` is chosen on all datasets, None if no row follows the rule.
    """
    position = options.choose(slice(None), max_loss)
    deployed = options.get_deployed(max_loss)
    return dict(
        columns,
        row=None if position is None else rows.iloc[position],
        loss=None if position is None else options.losses[position].max(),
        deployed=deployed.mean(),
        oracle=options.get_oracle().mean(),
    )


def largest_size(network):
    """Return the image size for comparisons."""
    files = [*GRID['vits'], *GRID['cnns']]
    file = next(x for x in files if Network(x).network == network)
    return find_full(Network(file)).img_size


def values(report):
    """Return the values for the template."""
    return dict(
        report=report,
        facts=read_machine(STUDY),
        rates=sorted(GRID['rates'], reverse=True),
        name_row=name_row,
        max_loss=MAX_LOSS,
        all=ALL,
        last=LAST,
        counts=sorted([COUNT, *GRID['counts']]),
    )
