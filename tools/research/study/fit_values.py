# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Values for pages about ``fit``: linear classifiers, candidates, budgets."""

from dataclasses import dataclass

from fit_networks import REDUCTIONS, get_name
from frozen import DEPTH
from tables import select

from mmclca.fitting.candidates import DEIT, IMAGE_SIZES, VIT_TINY

from .choice import TOLERANCE
from .page_values import Report
from .readings import ALL, AVERAGES, COUNT, FIT, LAST
from .rows import NONE
from .titles import TITLES, VITS

METHODS = {get_name(x): y['method'] for x, y in REDUCTIONS.items()}
CANDIDATES = dict(deit_tiny=DEIT, vit_tiny=VIT_TINY)
# image size at 0.2 GMACs by network
CNNS = dict(mobileone_s0=192, tf_efficientnet_lite0=160)
# features and classifier, on the full ViT
CLASSIFIERS = [(LAST, 'logistic'), (LAST, 'ridge')]
CLASSIFIERS += [(x, y) for x in AVERAGES for y in ('logistic', 'ridge')]
CLASSIFIERS += [(ALL, 'ridge')]
FEATURE_TITLES = {
    LAST: 'CLS of the last layer',
    AVERAGES[0]: 'CLS and average of the last layer',
    AVERAGES[1]: 'CLS and averages of all layers',
    ALL: 'CLS, averages and standard deviations of all layers',
}


@dataclass(frozen=True)
class FitReport:
    """Rows with the classifier in ``fit``, and its rivals.

    Args:
        report (Report): All rows.
    """

    report: Report

    @property
    def is_complete(self):
        """Whether the rows in README and docs/choose_weights.md are there."""
        rows = [
            self.describe(name, candidate)['row']
            for name, candidates in CANDIDATES.items()
            for candidate in candidates
        ]
        rows += [*self.find_all(CNNS), *self.find_cheap_cnns()]
        return all(row is not None for row in rows)

    def find(self, network, features=ALL, classifier=FIT, **columns):
        """Return a row, None if it is missing.

        Defaults to the full network at 224 px, three photos per class.
        """
        keys = dict(method=NONE, img_size=224, depth=DEPTH, count=COUNT)
        keys |= dict(network=network, features=features, classifier=classifier)
        rows = select(self.report.table, keys | columns)
        return None if rows.empty else rows.iloc[0]

    def find_cheap_cnns(self):
        """Return the rows of CNNs at 0.2 GMACs."""
        return [self.find(x, img_size=size) for x, size in CNNS.items()]

    def find_default(self, network):
        """Return the default of ``fit`` with some weights, or None."""
        return self.find(network, method=METHODS[network], keep_rate=0.5)

    def find_all(self, names, **columns):
        """Return a row per network, see :meth:`find`."""
        return [self.find(name, **columns) for name in names]

    def find_defaults(self, names):
        """Return the defaults of ``fit`` for some networks."""
        return [self.find_default(name) for name in names]

    def select_all(self, names, budget):
        """Return the rows that ``fit`` selects, for some networks."""
        return [self.select(name, budget) for name in names]

    def find_best_linear(self, network):
        """Return the linear classifier on the full ViT with the best mean."""
        rows = [self.find(network, x, y) for x, y in CLASSIFIERS]
        return max(rows, key=lambda row: row['mean'])

    def select(self, network, budget):
        """Return the row that ``fit`` selects within a budget in GMACs."""
        for candidate in CANDIDATES[network]:
            row = self.describe(network, candidate)['row']
            if row is not None and row.gmacs <= TOLERANCE * budget:
                return row
        return None

    def list_linear(self):
        """List linear classifiers on the full ViTs: features, classifier and
        the rows by network."""
        return [
            (x, y, {name: self.find(name, x, y) for name in VITS})
            for x, y in CLASSIFIERS
        ]

    def list_tables(self, *names):
        """List the candidates of ``fit`` side by side, in its order."""
        tables = [
            [self.describe(name, x) for x in CANDIDATES[name]]
            for name in names
        ]
        return [*zip(*tables, strict=True)]

    def describe(self, network, candidate):
        """Return title and row of a candidate, and whether it is default."""
        reduction, img_size, _ = candidate
        method, rate = reduction['method'], reduction['keep_rate']
        title = f'{method} {rate}' if method else 'full ViT'
        keys = dict(method=method or NONE, keep_rate=rate, img_size=img_size)
        return dict(
            title=f'{title}, {img_size} px',
            row=self.find(network, **keys),
            is_default=(method, img_size) == (METHODS[network], 224),
        )

    def list_candidates(self):
        """List pairs of rows, ``fit`` and ridge regression.

        The most expensive first, for each network.
        """
        fitted = self.report.fitted.sort_values('gmacs', ascending=False)
        rows = [fitted[fitted.network == name] for name in TITLES]
        keys = 'network', 'method', 'keep_rate', 'img_size'
        return [
            (row, self.find(classifier='ridge', **row[[*keys]]))
            for part in rows
            for _, row in part.iterrows()
        ]

    def is_offered(self, row):
        """Return whether ``fit`` can select the network in a row."""
        if row.network not in CANDIDATES:
            return row.img_size in IMAGE_SIZES
        offered = [
            (reduction['method'] or NONE, reduction['keep_rate'], img_size)
            for reduction, img_size, _ in CANDIDATES[row.network]
        ]
        return (row.method, row.keep_rate, row.img_size) in offered

    def compare(self, row, other):
        """Return the mean difference, its 95% interval, and the network."""
        title = TITLES[row.network]
        return dict(self.report.compare(row, other), title=title)

    def compare_with_smaller(self, network):
        """Compare the default with ``fit`` on photos with 160 px."""
        smaller = self.find(network, img_size=160)
        return self.compare(self.find_default(network), smaller)

    def compare_with_ridge(self, network):
        """Compare the default with ridge regression on all layers."""
        other = self.find(network, classifier='ridge')
        return self.compare(self.find_default(network), other)

    def compare_with_full(self, network):
        """Compare the default with ``fit`` on the full ViT."""
        return self.compare(self.find_default(network), self.find(network))

    def compare_with_users(self, network):
        """Return the default and users' best classifier by dataset."""
        users = self.report.find_users().loc[network]
        row = self.find_default(network)
        return {x: (row[x], users[x]) for x in self.report.names}

    def find_extremes(self, network):
        """Return the largest loss and gain to users' best classifier, each
        with its dataset."""
        pairs = self.compare_with_users(network).items()
        gains = sorted((ours - best, name) for name, (ours, best) in pairs)
        return gains[0], gains[-1]


def values(report):
    """Return the values for templates."""
    return dict(
        fit=FitReport(report),
        vits=VITS,
        titles=TITLES,
        features_titles=FEATURE_TITLES,
    )
