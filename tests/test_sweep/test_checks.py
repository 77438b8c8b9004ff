# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What is missing is said for all cells before the first."""

from dataclasses import replace

import pytest
import torch
from PIL import Image
from sweep_results import CELL

from mmclca.sweep.checks import check_inputs
from mmclca.sweep.compose import compose
from mmclca.sweep.results import config_hash


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A leaf40 of two images, and weights."""
    root = tmp_path / 'data' / 'leaf40_white'
    (root / 'images').mkdir(parents=True)
    (root / 'classes.txt').write_text('\n'.join(map(str, range(40))))
    for name in ('train_3shot', 'test'):
        image = root / 'images' / f'{name}.png'
        Image.new('RGB', (8, 8)).save(image)
        (root / f'{name}.txt').write_text(f'images/{name}.png 3\n')
    monkeypatch.setenv('MMCLCA_DATA', str(tmp_path / 'data'))
    torch.save({'a': torch.zeros(1)}, tmp_path / 'weights.pth')
    return root


def configs_of(*cells, weights):
    named = {'deit-tiny-p16': str(weights)}
    return [compose(cell, weights=named) for cell in cells]


CELLS = [replace(CELL, seed=seed) for seed in (1, 2)]


def test_all_is_there_and_stays_as_it_is(data, tmp_path):
    configs = configs_of(*CELLS, weights=tmp_path / 'weights.pth')
    before = [config_hash(cfg) for cfg in configs]
    check_inputs(configs)
    assert [config_hash(cfg) for cfg in configs] == before


def test_missing_weights_and_images_are_said_at_once(data, tmp_path):
    (data / 'images' / 'test.png').unlink()
    (data / 'train_3shot.txt').unlink()
    with pytest.raises(ValueError, match='not started') as error:
        check_inputs(configs_of(*CELLS, weights=tmp_path / 'none.pth'))
    lines = str(error.value).splitlines()[1:]
    assert len(lines) == 3
    assert 'used 2 times' in lines[0]
    assert 'train_3shot.txt' in lines[1] and '2 times' in lines[1]
    assert '1 of 1 images missing' in lines[2]
    assert lines[2].endswith('test.png (used 2 times)')


def test_a_data_set_within_another(data, tmp_path):
    (cfg,) = configs_of(CELL, weights=tmp_path / 'weights.pth')
    own = cfg.train_dataloader.dataset
    repeated = dict(type='RepeatDataset', times=2, dataset=own)
    cfg.train_dataloader.dataset = repeated
    check_inputs([cfg])
    (data / 'images' / 'train_3shot.png').unlink()
    with pytest.raises(ValueError, match='1 of 1 images'):
        check_inputs([cfg])


def test_a_model_that_cannot_be_built(data, tmp_path):
    configs = configs_of(*CELLS, weights=tmp_path / 'weights.pth')
    configs[0].model.backbone.reduce_at = (3, 99)
    configs[1].model.backbone.arch = 'no such'  # an AssertionError
    with pytest.raises(ValueError, match='reduce_at') as error:
        check_inputs(configs)
    assert str(error.value).count('(used 1 times)') == 2
