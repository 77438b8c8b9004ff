# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The results in docs/results are those of the grid as it is."""

import pytest
from tiny_run import ROOT

from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import config_hash, read_result, read_results

SWEEPS = (
    *('leaf40', 'leaf40_why', 'few_photographs_why'),
    *('family_from_scratch', 'architectures_from_scratch'),
)


@pytest.mark.parametrize('name', SWEEPS)
def test_a_fresh_clone_can_report_and_go_on(name):
    configs = read_grid(ROOT / f'configs/sweeps/{name}.py').configs()
    folder = ROOT / 'docs/results' / name
    found = {
        cell.name: read_result(folder / f'{cell.name}.json', config_hash(cfg))
        for cell, cfg in configs.items()
    }
    files = {path.stem for path in folder.glob('*.json')}
    assert files and files == {name for name in found if found[name]}


@pytest.mark.parametrize('name', SWEEPS)
def test_they_tell_no_paths(name):
    for result in read_results(ROOT / 'docs/results' / name):
        assert '/' not in f'{result["commit"]}{result["machine"]}'
        # 9a8dc54+: ATC and MCTF, where only the grid's file had changed
        assert result['commit'] == '9a8dc54+' or result['commit'].isalnum()
