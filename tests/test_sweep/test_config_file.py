# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs of runs, written as small files with base configs."""

import pytest
from mmengine.config import Config
from sweep_results import KEY
from tiny_run import ROOT

from mmclca.errors import Error
from mmclca.sweep.config_file import find_changes, write_config
from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import SECTIONS
from mmclca.sweep.runs import Run

GRIDS = [
    path.stem
    for path in (ROOT / 'configs/sweeps').glob('*.py')
    if 'keep_rates =' in path.read_text()
]


@pytest.mark.parametrize(
    'name',
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name != 'leaf40'))
        for name in sorted(GRIDS)
    ],
)
def test_written_config_equals_the_composed_one(name, tmp_path):
    runs = read_grid(ROOT / f'configs/sweeps/{name}.py').runs
    blocks = {(run.bases, run.key.variant, run.key.clca): run for run in runs}
    for run in blocks.values():
        composed = run.compose()
        write_config(run, composed, tmp_path / 'config.py')
        written = Config.fromfile(tmp_path / 'config.py')
        for section in SECTIONS:
            assert written.get(section) == composed.get(section), run.key.name


def test_written_config_lists_base_configs_and_changes(tmp_path):
    run = Run.from_key(KEY, options={'optim_wrapper.optimizer.lr': 1e-3})
    path = tmp_path / 'config.py'
    write_config(run, run.compose(), path)
    text = path.read_text()
    assert all(repr(str(base)) in text for base in run.bases)
    assert 'lr=0.001' in text and 'weight_decay' not in text
    assert len(text.splitlines()) < 60


def test_written_config_is_refused_if_a_base_config_has_changed(tmp_path):
    base = tmp_path / 'base.py'
    base.write_text('load_from = None\ntrain_cfg = dict(max_epochs=2)\n')
    run = Run(KEY, (base,), {}, None)
    config = Config.fromfile(base)
    write_config(run, config, tmp_path / 'config.py')
    base.write_text("load_from = 'a.pth'\ntrain_cfg = dict(max_epochs=3)\n")
    with pytest.raises(Error, match='base.py'):
        write_config(run, config, tmp_path / 'config.py')


@pytest.mark.parametrize(
    'base, changed',
    [
        (dict(a=1, b=2), dict(a=1, b=3)),
        (dict(a=dict(b=1, c=2)), dict(a=dict(b=1, c=3))),
        (dict(a=dict(b=1, c=2)), dict(a=dict(b=1))),
        (dict(a=dict(b=1)), dict(a=None)),
        (dict(a=None), dict(a=dict(b=1))),
        (dict(a=dict(b=dict(c=1, d=2))), dict(a=dict(b=dict(c=1), e=3))),
        (dict(a=(1, 2)), dict(a=[1, 2])),
        (dict(a=1), dict(a=True)),
        (dict(a=1), dict(a=1, b=[dict(c=1)])),
    ],
)
def test_changes_restore_the_settings(base, changed, tmp_path):
    changes = find_changes(base, changed)
    merged = Config(base)
    merged.merge_from_dict(changes)
    restored = merged.to_dict()
    assert restored == changed
    for name, value in changed.items():
        assert type(restored[name]) is type(value)
