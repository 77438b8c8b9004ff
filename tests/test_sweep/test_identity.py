# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Which changes of a config make its result another one."""

from dataclasses import replace

import pytest
from mmengine.config import Config

from mmclca.sweep.cell import Cell
from mmclca.sweep.compose import compose
from mmclca.sweep.results import config_hash

CELL = Cell('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2)


def digest(**options):
    dotted = {name.replace('__', '.'): v for name, v in options.items()}
    return config_hash(compose(CELL, dotted))


@pytest.mark.parametrize(
    'options',
    [
        dict(model__backbone__reducer__keep_rate=0.3),
        dict(model__head__groups_multiplier=1),
        dict(train_dataloader__batch_size=16),
        dict(train_dataloader__dataset__ann_file='train_1shot.txt'),
        dict(test_dataloader__dataset__ann_file='train.txt'),
        dict(optim_wrapper__optimizer__lr=1e-3),
        dict(train_cfg__max_epochs=5),
        dict(randomness__seed=3),
        dict(load_from='other.pth'),
        dict(load_from='timm://other'),
        dict(auto_scale_lr__enable=True),
        dict(test_cfg__fp16=True),
    ],
)
def test_what_changes_the_result_changes_the_hash(options):
    assert digest(**options) != digest()


@pytest.mark.parametrize(
    'options',
    [
        dict(train_dataloader__num_workers=0),
        dict(test_dataloader__pin_memory=True),
        dict(default_hooks__logger__interval=1),
        dict(work_dir='elsewhere'),
        dict(train_dataloader__dataset__data_root='/mnt/leaf40_white'),
        dict(train_cfg__val_interval=1),
    ],
)
def test_pace_and_places_do_not(options):
    assert digest(**options) == digest()


def test_the_folder_of_all_sets_does_not_count(monkeypatch):
    cfg = compose(replace(CELL, dataset='soygene'))
    before = config_hash(cfg)
    for loader in (cfg.train_dataloader, cfg.test_dataloader):
        loader.dataset.data_root = '/scratch/my sets'
    assert config_hash(cfg) == before
    cfg.train_dataloader.dataset.dataset = 'soylocal'
    assert config_hash(cfg) != before


def test_weights_count_by_their_file_name():
    one = compose(CELL, weights={'deit-tiny-p16': '/a/b/deit.pth'})
    two = compose(CELL, weights={'deit-tiny-p16': 'c/deit.pth'})
    assert config_hash(one) == config_hash(two)


def test_a_config_that_was_written_and_read_is_the_same(tmp_path):
    cfg = compose(CELL)
    path = tmp_path / 'config.py'
    path.write_text(cfg.pretty_text)
    assert config_hash(Config.fromfile(path)) == config_hash(cfg)
    assert len(config_hash(cfg)) == 16
