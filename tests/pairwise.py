# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Few cases in which every two values of two settings meet."""

from collections import Counter
from itertools import combinations, product

import pytest


def cells(*counts):
    """All pairs of (column, value) in rows of that many values."""
    for (a, m), (b, n) in combinations(enumerate(counts), 2):
        for i, j in product(range(m), range(n)):
            yield (a, i), (b, j)


def best(column, count, row, missing, used):
    """The value of a column that adds most pairs, then the rarest one."""

    def gain(value):
        pairs = (sorted([(column, value), cell]) for cell in row.items())
        new = sum(tuple(pair) in missing for pair in pairs)
        return new, -used[column, value]

    return max(range(count), key=gain)


def rows(*counts):
    """Yield rows of numbers below counts until each pair was in one."""
    missing, used = set(cells(*counts)), Counter()
    while missing:
        row = dict(min(missing))
        for column, count in enumerate(counts):
            if column not in row:
                row[column] = best(column, count, row, missing, used)
        used.update(row.items())
        missing -= set(combinations(sorted(row.items()), 2))
        yield [row[column] for column in range(len(counts))]


def cases(*factors):
    """As many rows of values as it takes for all pairs of them to meet."""
    return [
        tuple(values[i] for values, i in zip(factors, row, strict=True))
        for row in rows(*map(len, factors))
    ]


def each_pair(**settings):
    """Run a test on those rows of the values of its arguments."""
    names = ','.join(settings)
    return pytest.mark.parametrize(names, cases(*settings.values()))
