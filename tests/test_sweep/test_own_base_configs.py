# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweeps with user models, datasets and schedules."""

import json

import pytest
from mmengine.config import Config
from quick_runs import make_quick
from tiny_run import write_run

from mmclca.registry import MODELS
from mmclca.sweep.execution import DONE, Task, run_one
from mmclca.sweep.grid import read_grid
from mmclca.sweep.inputs import check_inputs
from mmclca.sweep.results import config_hash
from mmclca.utils.files import replace_text

# settings of the tiny config in each kind of base config
PARTS = {
    'models/my-vit': ['model'],
    'schedules/short': ['optim_wrapper', 'train_cfg', 'test_cfg'],
    'datasets/noise_32': [
        *('data_preprocessor', 'num_classes', 'test_evaluator'),
        *('train_dataloader', 'test_dataloader'),
    ],
}
REDUCER = """
from mmclca.models.reduction.reducers import TopK
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
sizes = [64]
clca = ['clca']
seeds = [1]
"""


@pytest.fixture
def grid(tmp_path):
    """Write a grid, base configs of each kind and a complete config.

    The data and schedule in the complete config are not used.
    """
    tiny = Config.fromfile(write_run(tmp_path / 'mine')).to_dict()
    tiny.update(num_classes=4, test_evaluator=dict(type='Accuracy', topk=(1,)))
    tiny['train_cfg']['max_epochs'] = 1
    tiny['model']['head']['num_classes'] = 1000
    backbone = tiny['model']['backbone']
    backbone['type'] = 'VisionTransformer'
    for name in ('reducer', 'reduce_at', 'cache'):
        del backbone[name]
    for file, names in PARTS.items():
        lines = [f'{name} = {tiny[name]!r}\n' for name in names]
        replace_text(tmp_path / f'mine/_base_/{file}.py', ''.join(lines))
    replace_text(tmp_path / 'grid.py', GRID)
    return tmp_path / 'grid.py'


def test_own_base_configs_are_composed(grid):
    configs = read_grid(grid).compose_configs().values()
    for cfg in configs:
        assert cfg.model.type == 'mmclca.TokenReductionClassifier'
        assert cfg.model.head.type == 'mmclca.CLAHead'
        assert cfg.model.head.num_classes == 4
        assert cfg.model.data_preprocessor.num_classes == 4
        assert cfg.model.backbone.img_size == 64
        assert cfg.train_dataloader.dataset.pipeline[1].scale == (64, 64)
        assert cfg.train_cfg.max_epochs == 1
        assert [hook.type for hook in cfg.custom_hooks] == [
            'mmclca.ClassCountHook',  # from our default_runtime
            'mmclca.GradientStatsHook',
        ]
    vit, tiny = (cfg.model.backbone.reduce_at for cfg in configs)
    assert vit == (0, 1, 2) and tiny == (1,)  # as in its config


@pytest.mark.slow
def test_own_base_configs_run(grid, monkeypatch, tmp_path):
    make_quick(monkeypatch)
    sweep = read_grid(grid)
    configs = sweep.compose_configs()
    check_inputs(list(configs.values()))
    for run in sweep.runs:
        cfg = configs[run.key]
        assert run_one(Task(run, cfg, tmp_path)) == DONE
        path = tmp_path / f'{run.key.name}.json'
        result = json.loads(path.read_text())
        assert 0 <= result['accuracy'] <= 100
        assert result['run']['backbone'] in ('my-vit', 'tiny')
        assert result['config_hash'] == config_hash(cfg)


@pytest.mark.parametrize(
    'file, change, term',
    [
        ('datasets/noise_32', ('num_classes = 4', ''), 'num_classes'),
        ('datasets/noise_32', ('data_pre', '_pre'), 'data_preprocessor'),
        ('datasets/noise_32', ("'topk': (1,)", "'topk': 5"), 'top-1 accuracy'),
        ('schedules/short', ('test_cfg', '_cfg'), 'test_cfg'),
        ('models/my-vit', ('VisionTransformer', 'DeiT3'), 'DeiT3'),
        ('models/my-vit', ('model = {', 'model = ('), 'line 1'),
    ],
)
def test_base_configs_are_refused(grid, file, change, term):
    path = grid.parent / f'mine/_base_/{file}.py'
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(ValueError, match=term) as error:
        read_grid(grid).compose_configs()
    assert str(path) in str(error.value)


def test_blocks_may_use_different_recipes(grid):
    text = "blocks = [{}, dict(recipe='clca_50e', variant='long')]\n"
    grid.write_text(GRID.replace("['mine']", "'mine'") + text)
    configs = read_grid(grid).compose_configs()
    epochs = {c.name: cfg.train_cfg.max_epochs for c, cfg in configs.items()}
    assert epochs['noise-64px_my-vit_evit-kr50_clca_seed1'] == 1
    assert epochs['noise-64px_my-vit_evit-kr50_clca_long_seed1'] == 50


def test_base_configs_may_import_methods(grid, monkeypatch):
    folder = grid.parent
    (folder / 'my_reducers_of_test.py').write_text(REDUCER)
    monkeypatch.syspath_prepend(folder)
    with open(folder / 'mine/_base_/models/my-vit.py', 'a') as file:
        file.write("custom_imports = dict(imports=['my_reducers_of_test'])\n")
    grid.write_text(GRID.replace("'EViT'", "'MineOfTest'"))
    try:
        configs = read_grid(grid).compose_configs()
    finally:
        MODELS.module_dict.pop('MineOfTest')
    for key, cfg in configs.items():
        assert cfg.model.backbone.reducer.type == 'mmclca.MineOfTest'
        if key.backbone == 'my-vit':  # kept for the process of the run
            assert cfg.custom_imports.imports == ['my_reducers_of_test']
