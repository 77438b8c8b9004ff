# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The results in docs/results belong to the present grids."""

import pytest
from tables import read_sweep
from tiny_run import ROOT

from mmclca.sweep.compose import Cell
from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import config_hash

SWEEPS = (
    *('leaf40', 'leaf40_why', 'few_photographs_why'),
    *('family_from_scratch', 'architectures_from_scratch'),
)


@pytest.mark.parametrize('name', SWEEPS)
@pytest.mark.slow
def test_a_fresh_clone_can_report_and_go_on(name):
    configs = read_grid(ROOT / f'configs/sweeps/{name}.py').configs()
    wanted = {cell.name: config_hash(cfg) for cell, cfg in configs.items()}
    results = read_sweep(ROOT / f'docs/results/{name}.csv')
    assert results
    for result in results:
        cell = Cell(**result['cell'])
        assert result['config_hash'] == wanted[cell.name], cell.name


@pytest.mark.parametrize('name', SWEEPS)
def test_they_tell_no_paths(name):
    for result in read_sweep(ROOT / f'docs/results/{name}.csv'):
        assert '/' not in f'{result["commit"]}{result["machine"]}'
        # 9a8dc54+: ATC and MCTF, where only the grid's file had changed
        assert result['commit'] == '9a8dc54+' or result['commit'].isalnum()
