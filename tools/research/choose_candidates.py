# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print which candidates and defaults for fit follow from few_tokens.csv.

At each cost, the candidate has the best mean over the datasets. On no dataset
it is more than 4 points below the best linear classifier that users train.
The choice is repeated without each dataset, and tested on it.
"""

from collections import Counter
from itertools import product

import pandas as pd
from study.choice import MAX_LOSS, make_options, select_affordable
from study.networks import GRID
from study.page_values import Report
from study.titles import VITS, name_row

from mmclca import cli

GROUPS = 'any', 'any, free license'
DEFAULT_BUDGET = 0.63  # half the full ViT


def list_candidates(report, rows, max_loss):
    """Yield a dict per budget: the chosen row, and how the choice did."""
    users = report.find_users()
    for budget in GRID['budgets']:
        affordable = select_affordable(rows, budget)
        if affordable.empty:
            continue
        options = make_options(affordable, report.names, users)
        position = options.choose(slice(None), max_loss)
        names = Counter(
            'none' if x is None else name_row(affordable.iloc[x])
            for x in options.leave_out(max_loss)
        )
        row = None if position is None else affordable.iloc[position]
        yield {
            'at most GMACs': budget,
            'network': 'none' if row is None else name_row(row),
            'accuracy': None if row is None else round(row['mean'], 1),
            'largest loss': None
            if row is None
            else round(options.losses[position].max(), 1),
            'left out': round(options.get_deployed(max_loss).mean(), 1),
            'chosen without a dataset': ', '.join(
                f'{count} x {name}' for name, count in names.most_common()
            ),
        }


def compare_networks(report):
    """Return mean accuracies by method at the default budget."""
    rows = select_affordable(report.usable, DEFAULT_BUDGET)
    rows = rows[rows.network.isin(VITS) & (rows.img_size == 224)]
    rows = rows[(rows.method != 'none') & (rows.features == 'all layers')]
    keys = ['method', 'keep_rate']
    return rows.pivot(index=keys, columns='network', values='mean')


def main():
    parser = cli.Parser(description=__doc__)
    parser.parse_args()
    report = Report.read()
    pd.set_option('display.width', 0, 'display.max_colwidth', None)
    missing = {x: y for x, y in report.count_missing().items() if y}
    if missing:
        print(f'Not measured yet: {missing}\n')
    classifiers = dict(fit=report.fitted, ridge=report.usable)
    limits = MAX_LOSS, float('inf')
    for kind, group, limit in product(classifiers, GROUPS, limits):
        print(f'{kind}, {group}, loss of at most {limit:g} points')
        rows = report.get_groups(classifiers[kind])[group]
        table = pd.DataFrame(list_candidates(report, rows, limit))
        print('not measured' if table.empty else table.to_string(index=False))
        print()
    print('Default network, mean accuracy with half of the computation')
    print(compare_networks(report).round(1).to_string())


if __name__ == '__main__':
    cli.run(main)
