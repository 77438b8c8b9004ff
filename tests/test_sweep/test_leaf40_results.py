# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Results in docs/results match the current grids."""

import pytest
from tables import read_sweep
from tiny_run import ROOT

from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import config_hash
from mmclca.sweep.runs import RunKey

SWEEPS = (
    *('leaf40', 'leaf40_why', 'few_photos_why'),
    *('family_from_scratch', 'architectures_from_scratch'),
)


@pytest.mark.parametrize('name', SWEEPS)
@pytest.mark.slow
def test_stored_results_have_current_config_hashes(name):
    configs = read_grid(ROOT / f'configs/sweeps/{name}.py').compose_configs()
    wanted = {key.name: config_hash(cfg) for key, cfg in configs.items()}
    results = read_sweep(ROOT / f'docs/results/{name}.csv')
    assert results
    for result in results:
        key = RunKey(**result['run'])
        assert result['config_hash'] == wanted[key.name], key.name
