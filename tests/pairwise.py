# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Pairwise test cases: every two values of two settings occur together."""

from collections import Counter
from itertools import combinations, product

import pytest


def cells(*counts):
    """Yield all pairs of (column, value), for value counts by column."""
    for (a, m), (b, n) in combinations(enumerate(counts), 2):
        for i, j in product(range(m), range(n)):
            yield (a, i), (b, j)


def best(column, count, row, missing, used):
    """Return the value that adds most missing pairs, then the rarest."""

    def gain(value):
        pairs = (sorted([(column, value), cell]) for cell in row.items())
        new = sum(tuple(pair) in missing for pair in pairs)
        return new, -used[column, value]

    return max(range(count), key=gain)


def rows(*counts):
    """Yield rows of value indices until each pair has occurred."""
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
    """Return rows of values that contain each pair."""
    return [
        tuple(values[i] for values, i in zip(factors, row, strict=True))
        for row in rows(*map(len, factors))
    ]


def each_pair(**settings):
    """Parametrize a test with pairwise rows of its arguments."""
    names = ','.join(settings)
    return pytest.mark.parametrize(names, cases(*settings.values()))
