# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Single changes to our recipe, compared with it on the same draws."""

import json

import pytest
from few_photographs_runs import trained_results
from tiny_run import ROOT

from mmclca.sweep.compose import compose
from mmclca.sweep.few_photographs.changes import (
    CHANGES,
    reading,
    table_of_changes,
    to_changes,
)
from mmclca.sweep.few_photographs.compare import Difference
from mmclca.sweep.few_photographs.runs import VARIANT, to_runs
from mmclca.sweep.grid import read_grid
from mmclca.sweep.identity import config_hash

GRIDS = ROOT / 'configs/sweeps'
OURS = [
    *trained_results('ours', 'base', [90.0, 91.0, 92.0, 50.0], 0.4, 0.1),
    *trained_results('ours', 'base', [94.0, 95.0, 96.0], 0.6, 0.5),
    *trained_results('ours', 'base', [10.0] * 3, 0.4, 0.5, size=192),
    *trained_results('paper', 'clca', [10.0] * 3, 0.4, 0.1),
]


def changed(*results):
    """Rows by their words, of results of changes."""
    found = to_changes(to_runs([], sum(results, [])), to_runs([], OURS))
    return found.set_index('change') if len(found) else found


def rows_of(table):
    head, _, *rows = table.splitlines()
    titles, *rows = ([c.strip() for c in r.split('|')] for r in (head, *rows))
    return [dict(zip(titles, row, strict=True)) for row in rows]


def test_a_change_is_compared_on_its_draws_at_its_keep_rate():
    found = changed(
        trained_results('tome', 'base', [95.0, 97.0, 99.0], 0.6, 0.5),
        trained_results('cache', 'clc', [91.0, 92.5, 93.0], 0.43, 0.1),
    )
    # the recipes first, on these draws; then as they are listed
    assert list(found.index) == [
        'the recipe, EViT 0.1',
        'the recipe, EViT 0.5',
        CHANGES['cache'],
        CHANGES['tome'],
    ]
    assert found.accuracy.tolist()[:2] == [91, 95]
    tome, cache = (found.loc[CHANGES[name]] for name in ('tome', 'cache'))
    assert tome.difference.mean == 2 and tome.gmacs == 0.6
    assert cache.difference.mean == pytest.approx(3.5 / 3)
    assert cache.seconds == 101 and found.draws.tolist() == [3] * 4


def test_runs_that_are_still_missing():
    found = changed(
        trained_results('ema', 'base', [93.0], 0.4, 0.1),
        trained_results('topk', 'base', [93.0], 0.4, 0.7),  # of no recipe
    )
    assert list(found.index) == ['the recipe, EViT 0.1', CHANGES['ema']]
    assert found.accuracy.tolist() == [90, 93]
    recipe, ema = rows_of(table_of_changes(found.reset_index()))
    assert recipe['to the recipe [95 %]'] == recipe['reading'] == ''
    assert ema['to the recipe [95 %]'] == '+3.0'
    assert ema['reading'] == 'one draw only'
    nothing = trained_results('topk', 'base', [93.0], 0.4, 0.7)
    assert changed(nothing).empty


@pytest.mark.parametrize(
    ('low', 'high', 'expected'),
    [
        (0.1, 3.0, 'helps'),
        (-3.0, -0.1, 'hurts'),
        (-0.1, 3.0, 'no difference seen'),
        (0.0, 0.0, 'no difference seen'),  # the same on all draws
    ],
)
def test_what_is_read_follows_from_the_interval(low, high, expected):
    middle = (low + high) / 2
    assert reading(Difference(middle, low, high, 3)) == expected


def test_the_grid_is_of_these_changes():
    configs = read_grid(GRIDS / 'few_photographs_why.py').configs()
    names = [VARIANT.fullmatch(cell.variant)['arm'] for cell in configs]
    assert set(names) == set(CHANGES) and len(names) == 3 * len(CHANGES)
    digests = {config_hash(cfg) for cfg in configs.values()}
    assert len(digests) == len(configs)  # each is of its own


@pytest.mark.parametrize('keep_rate', [0.1, 0.5])
def test_what_they_change_is_what_was_measured(keep_rate):
    grid = read_grid(GRIDS / 'few_photographs.py')
    cell, own = next(
        (cell, own)
        for cell, own in grid.cells.items()
        if (cell.variant, cell.keep_rate) == ('ours-d2', keep_rate)
    )
    config = compose(cell, **own)
    measured = ROOT / f'docs/results/few_photographs/{cell.name}.json'
    result = json.loads(measured.read_text())
    assert result['config_hash'] == config_hash(config)
