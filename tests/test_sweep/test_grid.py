# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a grid file makes, and what is said of one that cannot run."""

import pytest
from tiny_run import ROOT

from mmclca.sweep.compose import Cell
from mmclca.sweep.grid import read_grid

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


def test_every_combination_whole_seeds_first(read):
    cells = list(read(GRID).cells)
    assert [(c.seed, c.keep_rate, c.clca) for c in cells] == [
        (seed, rate, clca)
        for seed in (1, 2)
        for rate in (0.5, 0.25)
        for clca in ('base', 'clca')
    ]
    assert cells[-1] == Cell(
        'leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2
    )
    assert cells[-1].name == 'leaf40-224px_deit-tiny-p16_evit-kr25_clca_seed2'


def test_blocks_fill_in_and_override(read):
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
    one = [own for cell, own in grid.cells.items() if not cell.variant]
    two = {cell: own for cell, own in grid.cells.items() if cell.variant}
    first = dict(
        recipe='clca_50e',
        options={'train_cfg.max_epochs': 5},
        weights={'deit-tiny-p16': 'a/file.pth'},
        folders=(),
    )
    assert one == 4 * [first]
    assert {(c.method, c.keep_rate, c.clca, c.seed) for c in two} == {
        (method, rate, 'cla', seed)
        for method in ('ToMe', 'ATS')
        for rate in (0.5, 0.25)
        for seed in (1, 2)
    }
    both = {'train_cfg.max_epochs': 5, 'optim_wrapper.optimizer.lr': 1e-5}
    assert [own['options'] for own in two.values()] == 8 * [both]
    assert all('_slow_' in cell.name for cell in two)
    assert grid.keep_checkpoints


@pytest.mark.parametrize('name', ['fig_1', 'fig_3', 'fig_4', 'table_1'])
def test_the_grids_of_the_paper_say_how_many_runs_they_are(name):
    path = ROOT / 'configs/sweeps' / f'{name}.py'
    assert f' {len(read_grid(path).cells):,} runs.' in path.read_text()


@pytest.mark.parametrize(
    'change, said',
    [
        (
            ('leaf40', 'leaf4'),
            "no 'leaf4' (do you mean leaf40?); choose from ",
        ),
        (('deit-tiny-p16', 'deit-p16'), "backbones: no 'deit-p16' (do you"),
        (('EViT', 'Evit'), "methods: no 'Evit' (do you mean EViT?)"),
        (("'base'", "'CLA'"), 'base, cla, clc, clca'),
        (('0.25', '1.5'), 'keep_rates=1.5 must be a number'),
        (('224', '0'), 'sizes=0 must be an integer'),
        (('[1, 2]', '[-1]'), 'seeds=-1 must be'),
        (("'EViT'", "'none'"), "method 'none'"),
        (('[1, 2]', '3'), 'seeds = [...]'),
        (("['leaf40']", '[]'), 'datasets = [...]'),
        (('seeds', 'seed'), "no 'seed' (do you mean seeds?)"),
        (('seeds', "variant = 'a/b'\nseeds"), "variant='a/b'"),
        (('[0.5, ', '[0.25, '), '2 times: set a variant'),
        (('seeds', "weights = {'vit': 'x'}\nseeds"), "weights: no 'vit'"),
        (('seeds', 'blocks = [dict(weights={})]\nseeds'), "no 'weights'"),
    ],
)
def test_what_does_not_exist_is_said_with_what_does(read, change, said):
    with pytest.raises(ValueError, match='has errors') as error:
        read(GRID.replace(*change))
    assert said in str(error.value)


def test_all_problems_at_once(read):
    text = GRID.replace('EViT', 'Evit').replace('0.25', '7')
    with pytest.raises(ValueError) as error:
        read(text)
    assert 'Evit' in str(error.value) and 'keep_rates=7' in str(error.value)
