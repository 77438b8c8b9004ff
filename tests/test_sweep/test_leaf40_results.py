# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The results in docs/results are those of the grid as it is."""

import pytest
from tiny_run import ROOT

from mmclca.sweep.checks import check_results
from mmclca.sweep.grid import read_grid
from mmclca.sweep.pieces import compose
from mmclca.sweep.result import read_results

FOLDER = ROOT / 'docs/results/leaf40'


@pytest.fixture(scope='module')
def configs():
    grid = read_grid(ROOT / 'configs/sweeps/leaf40.py')
    return {
        cell: compose(cell, options, grid.weights)
        for cell, options in grid.cells.items()
    }


def test_a_fresh_clone_can_report_and_go_on(configs):
    check_results(FOLDER, configs)
    names = {cell.name for cell in configs}
    files = {path.stem for path in FOLDER.glob('*.json')}
    assert files and files <= names


def test_they_tell_no_paths():
    for result in read_results(FOLDER):
        assert '/' not in f'{result["commit"]}{result["machine"]}'
        assert result['commit'] and not result['commit'].endswith('+')
