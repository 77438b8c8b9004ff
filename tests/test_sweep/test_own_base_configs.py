# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweeps with user models, datasets and schedules."""

import json

import pytest
from quick_runs import make_quick
from tiny_run import write_images, write_run

from mmclca.registry import MODELS
from mmclca.sweep.checks import check_inputs
from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import config_hash
from mmclca.sweep.run import DONE, run_cell
from mmclca.utils.files import replace_text

MODEL = """
model = dict(
    type='ImageClassifier',
    backbone=dict(
        type='VisionTransformer',
        arch=dict(
            embed_dims=16,
            num_layers=4,
            num_heads=2,
            feedforward_channels=32,
        ),
        img_size=224,
        patch_size=8,
    ),
    head=dict(type='LinearClsHead', num_classes=1000, in_channels=16),
)
"""
DATA = """
num_classes = 4
data_preprocessor = dict(num_classes=1000, mean=[127.5] * 3, std=[127.5] * 3)
_loader = dict(
    batch_size=8,
    num_workers=0,
    dataset=dict(
        type='CustomDataset',
        data_root='DATA',
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='ResizeEdge', scale=256, edge='short'),
            dict(type='CenterCrop', crop_size=224),
            dict(type='PackInputs'),
        ],
    ),
    sampler=dict(type='DefaultSampler', shuffle=True),
)
train_dataloader = _loader
test_dataloader = _loader
test_evaluator = dict(type='Accuracy', topk=(1,))
"""
RECIPE = """
optim_wrapper = dict(optimizer=dict(type='SGD', lr=0.01))
train_cfg = dict(by_epoch=True, max_epochs=1)
test_cfg = dict()
"""
REDUCER = """
from mmclca.models import TopK
from mmclca.registry import MODELS


@MODELS.register_module()
class MineOfTest(TopK):
    pass
"""
GRID = """
config_dirs = ['mine']
datasets = ['noise']
backbones = ['my-vit', 'tiny']
recipe = 'short'
methods = ['EViT']
keep_rates = [0.5]
sizes = [32]
clca = ['clca']
seeds = [1]
"""


@pytest.fixture
def grid(tmp_path):
    """Write a grid, base configs of each kind and a complete config.

    The data and schedule in the complete config are not used.
    """
    write_images(tmp_path / 'noise')
    base = tmp_path / 'mine/_base_'
    data = DATA.replace('DATA', str(tmp_path / 'noise'))
    replace_text(base / 'models/my-vit.py', MODEL)
    replace_text(base / 'datasets/noise_224.py', data)
    replace_text(base / 'schedules/short.py', RECIPE)
    write_run(tmp_path / 'mine')
    path = tmp_path / 'grid.py'
    path.write_text(GRID)
    return path


def test_own_base_configs_are_composed(grid):
    vit, tiny = read_grid(grid).configs().values()
    for cfg in (vit, tiny):
        assert cfg.model.type == 'mmclca.TokenReductionClassifier'
        assert cfg.model.head.type == 'mmclca.CLAHead'
        assert cfg.model.head.num_classes == 4
        assert cfg.model.data_preprocessor.num_classes == 4
        assert cfg.model.backbone.img_size == 32
        assert cfg.train_dataloader.dataset.data_root.endswith('/noise')
        assert cfg.optim_wrapper.optimizer.type == 'SGD'
        assert [hook.type for hook in cfg.custom_hooks] == [
            'mmclca.ClassCountHook',  # from our default_runtime
            'mmclca.GradientStatsHook',
        ]
    _, resize, crop, _ = vit.test_dataloader.dataset.pipeline
    assert (resize.scale, crop.crop_size) == (36, (32, 32))
    assert vit.model.backbone.reduce_at == (1, 2, 3)
    assert tiny.model.backbone.reduce_at == (1,)  # as in its config


@pytest.mark.slow
def test_own_base_configs_run(grid, monkeypatch, tmp_path):
    make_quick(monkeypatch)
    configs = read_grid(grid).configs()
    check_inputs(list(configs.values()))
    for cell, cfg in configs.items():
        assert run_cell(cell, cfg, tmp_path, 0, 1, False) == DONE
        result = json.loads((tmp_path / f'{cell.name}.json').read_text())
        assert 0 <= result['accuracy'] <= 100
        assert result['cell']['backbone'] in ('my-vit', 'tiny')
        assert result['config_hash'] == config_hash(cfg)


def test_base_config_is_refused_if_syntax_is_invalid(grid):
    path = grid.parent / 'mine/_base_/models/my-vit.py'
    path.write_text('model = dict(')
    with pytest.raises(ValueError, match='my-vit.py, line 1'):
        read_grid(grid)


@pytest.mark.parametrize(
    'file, change, said',
    [
        ('datasets/noise_224', ('num_classes = 4', ''), 'num_classes'),
        (
            'datasets/noise_224',
            ('data_pre', '_pre'),
            'model.data_preprocessor',
        ),
        ('datasets/noise_224', ('topk=(1,)', 'topk=5'), 'top-1 accuracy'),
        ('schedules/short', ('test_cfg', '_cfg'), 'test_cfg'),
        ('models/my-vit', ('VisionTransformer', 'DeiT3'), 'DeiT3'),
    ],
)
def test_incomplete_base_configs_are_refused(grid, file, change, said):
    path = grid.parent / f'mine/_base_/{file}.py'
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(ValueError, match=said) as error:
        read_grid(grid).configs()
    assert str(path) in str(error.value)


def test_blocks_may_use_different_recipes(grid):
    text = "blocks = [{}, dict(recipe='clca_50e', variant='long')]\n"
    grid.write_text(GRID.replace("['mine']", "'mine'") + text)
    configs = read_grid(grid).configs()
    epochs = {c.name: cfg.train_cfg.max_epochs for c, cfg in configs.items()}
    assert epochs['noise-32px_my-vit_evit-kr50_clca_seed1'] == 1
    assert epochs['noise-32px_my-vit_evit-kr50_clca_long_seed1'] == 50


def test_base_configs_may_import_methods(grid, monkeypatch):
    folder = grid.parent
    (folder / 'my_reducers_of_test.py').write_text(REDUCER)
    monkeypatch.syspath_prepend(folder)
    path = folder / 'mine/_base_/models/my-vit.py'
    path.write_text(
        MODEL + "custom_imports = dict(imports=['my_reducers_of_test'])\n"
    )
    grid.write_text(GRID.replace("'EViT'", "'MineOfTest'"))
    try:
        configs = read_grid(grid).configs()
    finally:
        MODELS.module_dict.pop('MineOfTest')
    for cell, cfg in configs.items():
        assert cfg.model.backbone.reducer.type == 'mmclca.MineOfTest'
        if cell.backbone == 'my-vit':  # kept for the process of the cell
            assert cfg.custom_imports.imports == ['my_reducers_of_test']
