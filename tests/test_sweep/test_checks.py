# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Input checks before a sweep starts."""

from dataclasses import replace

import pytest
import torch
from PIL import Image
from sweep_results import KEY, compose

from mmclca.sweep.inputs import check_inputs
from mmclca.sweep.results import config_hash


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Write a leaf40 dataset with two images, and weights."""
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


def compose_all(*keys, weights):
    named = {'deit-tiny-p16': str(weights)}
    return [compose(key, weights=named) for key in keys]


KEYS = [replace(KEY, seed=seed) for seed in (1, 2)]


def test_inputs_are_checked_and_unchanged(data, tmp_path):
    configs = compose_all(*KEYS, weights=tmp_path / 'weights.pth')
    own = configs[0].train_dataloader.dataset
    configs[0].train_dataloader.dataset = dict(
        type='RepeatDataset', times=2, dataset=own
    )
    before = [config_hash(cfg) for cfg in configs]
    check_inputs(configs)
    assert [config_hash(cfg) for cfg in configs] == before
    (data / 'images' / 'train_3shot.png').unlink()
    with pytest.raises(ValueError, match='images missing'):
        check_inputs(configs[:1])


def test_all_missing_inputs_are_listed(data, tmp_path):
    (data / 'images' / 'test.png').unlink()
    (data / 'train_3shot.txt').unlink()
    configs = compose_all(*KEYS, weights=tmp_path / 'none.pth')
    configs[0].model.backbone.reduce_at = (3, 99)
    configs[1].model.backbone.arch = 'no such'  # raises AssertionError
    with pytest.raises(ValueError) as error:
        check_inputs(configs)
    _, *files, layer, arch = str(error.value).splitlines()
    names = ('none.pth', 'train_3shot.txt', 'test.png')
    for line, name in zip(files, names, strict=True):
        assert name in line and 'used 2 times' in line
    assert 'reduce_at' in layer and 'used 1 times' in layer and 'arch' in arch
