# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Runs of grid files, and refused grids."""

import pytest
from tiny_run import ROOT

from mmclca.sweep.grid import read_grid
from mmclca.sweep.runs import RunKey

GRID = """
datasets = ['leaf40']
backbones = ['deit-tiny-p16']
methods = ['EViT']
keep_rates = [0.5, 0.25]
sizes = [224]
clca = ['base', 'clca']
seeds = [1, 2]
"""


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / 'grid.py'
        path.write_text(text)
        return read_grid(path)

    return read


def test_grid_has_every_combination_sorted_by_seed(read):
    runs = [run.key for run in read(GRID).runs]
    assert [(c.seed, c.keep_rate, c.clca) for c in runs] == [
        (seed, rate, clca)
        for seed in (1, 2)
        for rate in (0.5, 0.25)
        for clca in ('base', 'clca')
    ]
    assert runs[-1] == RunKey(
        'leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2
    )
    assert runs[-1].name == 'leaf40-224px_deit-tiny-p16_evit-kr25_clca_seed2'


def test_blocks_override_the_file(read):
    grid = read(
        GRID
        + """
options = {'train_cfg.max_epochs': 5}
blocks = [
    dict(keep_rates=[1]),
    dict(methods=['ToMe', 'ATS'], clca=['cla'], variant='slow',
         options={'optim_wrapper.optimizer.lr': 1e-5}),
]
weights = {'deit-tiny-p16': 'a/file.pth'}
keep_checkpoints = True
"""
    )
    first = [run for run in grid.runs if not run.key.variant]
    second = [run for run in grid.runs if run.key.variant]
    load_from = {'load_from': 'a/file.pth'}
    options = {'train_cfg.max_epochs': 5}
    assert [run.overrides for run in first] == 4 * [load_from | options]
    names = (
        'default_runtime',
        'clca_50e',
        'leaf40_224',
        'clca-evit_deit-tiny-p16',
    )
    assert [base.stem for base in first[0].bases] == [*names]
    assert {
        (run.variant.method, run.variant.keep_rate, run.key.clca, run.key.seed)
        for run in second
    } == {
        (method, rate, 'cla', seed)
        for method in ('ToMe', 'ATS')
        for rate in (0.5, 0.25)
        for seed in (1, 2)
    }
    options |= {'optim_wrapper.optimizer.lr': 1e-5}
    assert [run.overrides for run in second] == 8 * [load_from | options]
    assert all('_slow_' in run.key.name for run in second)
    assert grid.keep_checkpoints


@pytest.mark.parametrize('name', ['fig_1', 'fig_3', 'fig_4', 'table_1'])
def test_paper_grids_state_their_number_of_runs(name):
    path = ROOT / 'configs/sweeps' / f'{name}.py'
    assert f' {len(read_grid(path).runs):,} runs.' in path.read_text()


@pytest.mark.parametrize(
    'old, new, term',
    [
        ('leaf40', 'leaf4', "datasets.*'leaf4'"),
        ('deit-tiny-p16', 'deit-p16', "backbones.*'deit-p16'"),
        ('EViT', 'Evit', "methods.*'Evit'"),
        ("'base'", "'CLA'", "clca.*'CLA'"),
        ('0.25', '1.5', 'keep_rates=1.5'),
        ("EViT']\nkeep_rates = [0", "Evit']\nkeep_rates = [7", '(?s)Evit.*7'),
        ('224', '0', 'sizes=0'),
        ('[1, 2]', '[-1]', 'seeds=-1'),
        ("'EViT'", "'none'", "method 'none'"),
        ('[1, 2]', '3', 'seeds'),
        ("['leaf40']", '[]', 'datasets'),
        ('seeds', 'seed', "'seed'"),
        ('seeds', "variant = 'a/b'\nseeds", 'variant'),
        ('[0.5, ', '[0.25, ', '2 times'),
        ('seeds', "weights = {'vit': 'x'}\nseeds", "weights.*'vit'"),
        ('seeds', 'blocks = [dict(weights={})]\nseeds', "blocks.*'weights'"),
        ('seeds', 'blocks = [3]\nseeds', 'blocks: expected a list of dicts'),
        ('seeds', "blocks = 'a'\nseeds", 'blocks=.* a list'),
        ('seeds', 'options = [1]\nseeds', r'options=\[1\].* a dict'),
        ('seeds', 'blocks = [dict(options=1)]\nseeds', 'options=1.* a dict'),
        ('seeds', 'weights = 1\nseeds', 'weights=1.* a dict'),
        ('seeds', 'variant = 1\nseeds', 'variant=1.* a str'),
        ('seeds', "keep_checkpoints = 'no'\nseeds", 'keep_checkpoints.*bool'),
    ],
)
def test_grid_settings_are_refused(read, old, new, term):
    with pytest.raises(ValueError, match=term):
        read(GRID.replace(old, new))
