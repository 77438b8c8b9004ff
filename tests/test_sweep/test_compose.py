# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs of cells against the config files that they stand for."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from mmengine.config import Config
from tiny_run import ROOT

from mmclca.datasets.pipelines import set_image_size
from mmclca.registry import MODELS
from mmclca.sweep.compose import (
    ABLATIONS,
    DATASETS,
    RECIPES,
    RUNTIME,
    Cell,
    base_configs,
    compose,
    find,
    read,
)
from mmclca.sweep.compose import MODELS as MODEL_CONFIGS

CELL = Cell('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2)
COTTON = Cell('cotton80', 'deit3-base-p16', 'EViT', 0.1, 448, 'clca', 1)


def names_of(cell):
    ablation = '' if cell.clca == 'base' else f'{cell.clca}-'
    return (
        f'{ablation}{cell.method.lower()}-kr{100 * cell.keep_rate:g}_'
        f'{cell.backbone}_1xb32-50e_{cell.dataset}-{cell.size}px.py'
    )


@pytest.mark.parametrize(
    'cell',
    [
        CELL,
        replace(CELL, clca='base'),
        *(replace(COTTON, clca=clca) for clca in ABLATIONS),
        replace(COTTON, method='ATS', keep_rate=0.5, backbone='vit-base-p16'),
    ],
    ids=lambda cell: cell.name,
)
def test_a_cell_is_the_config_file_of_its_name(cell):
    cfg = compose(cell)
    file = Config.fromfile(ROOT / 'configs/clca' / names_of(cell))
    assert cfg.model == file.model
    assert cfg.load_from == file.load_from
    assert cfg.optim_wrapper == file.optim_wrapper
    assert cfg.param_scheduler == file.param_scheduler
    assert cfg.train_cfg == file.train_cfg
    set_image_size(file.train_dataloader.dataset.pipeline, cell.size)
    set_image_size(file.test_dataloader.dataset.pipeline, cell.size)
    assert cfg.train_dataloader == file.train_dataloader
    assert cfg.test_dataloader == file.test_dataloader


def test_folder_of_the_data_is_that_of_now(monkeypatch):
    for folder in ('here', 'there'):
        monkeypatch.setenv('MMCLCA_DATA', folder)
        cfg = compose(CELL)
        root = cfg.train_dataloader.dataset.data_root
        assert root == f'{folder}/leaf40_white'


def test_seed_weights_options_and_hooks():
    options = {'optim_wrapper.optimizer.lr': 3e-4}
    cfg = compose(CELL, options, {'deit-tiny-p16': 'file.pth'})
    assert cfg.randomness.seed == 2
    assert cfg.load_from == 'file.pth'
    assert cfg.optim_wrapper.optimizer.lr == 3e-4
    assert [hook.type for hook in cfg.custom_hooks] == [
        'mmclca.ClassCountHook',
        'mmclca.GradientStatsHook',
    ]
    assert cfg.val_cfg is None
    assert compose(CELL).optim_wrapper.optimizer.lr == 1e-4


def test_options_serve_every_cell_of_a_block():
    optimizer = dict(_delete_=True, type='Lamb', lr=3e-3)
    options = {'optim_wrapper.optimizer': optimizer}
    for seed in (1, 2):
        cfg = compose(replace(CELL, seed=seed), options)
        assert cfg.optim_wrapper.optimizer == dict(type='Lamb', lr=3e-3)


def test_what_mixes_knows_how_many_classes():
    augments = [dict(type='Mixup', alpha=0.8)]
    cfg = compose(CELL, {'model.train_cfg': dict(augments=augments)})
    assert cfg.model.data_preprocessor.num_classes == 40
    assert 'num_classes' not in compose(CELL).model.data_preprocessor


def test_no_method_is_all_tokens():
    cell = replace(CELL, method='none', keep_rate=1.0, clca='base')
    assert cell.name == 'leaf40-224px_deit-tiny-p16_none-kr100_base_seed2'
    backbone = compose(cell).model.backbone
    assert backbone.reducer is None and backbone.reduce_at == ()


def test_another_size():
    cfg = compose(replace(COTTON, size=224))
    assert cfg.model.backbone.img_size == 224
    (cached, *others) = cfg.train_dataloader.dataset.pipeline
    assert cached.transforms[1].scale == (256, 256)
    assert others[0].crop_size == (224, 224)
    assert cfg.test_dataloader.dataset.pipeline[1].scale == (256, 256)
    assert cfg.test_dataloader.dataset.pipeline[2].crop_size == (224, 224)


def test_sizes_of_other_steps():
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='RandomResizedCrop', scale=99, backend='pillow'),
        dict(type='PackInputs'),
    ]
    set_image_size(pipeline, 100)
    assert pipeline[1] == dict(
        type='RandomResizedCrop', scale=(100, 100), backend='pillow'
    )
    assert pipeline[0] == dict(type='LoadImageFromFile')


def has_ablations(name):
    """Whether a config is a classifier of CLS of our ViT's last layer."""
    model = read(find(MODEL_CONFIGS, name)).get('model', {})
    backbone = dict(type=None, out_type='cls_token') | model['backbone']
    return (
        'head' in model
        and not name.startswith('lf')
        and backbone['type'] == 'mmclca.TokenReductionViT'
        and backbone['out_type'] == 'cls_token'
    )


CLCA_CONFIGS = list(filter(has_ablations, base_configs(MODEL_CONFIGS)))
QUICK = ('vit-base-p16', 'clca')  # the cells above have a file


@pytest.mark.parametrize(
    'backbone, clca',
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (pair != QUICK))
        for pair in product(CLCA_CONFIGS, ABLATIONS)
    ],
)
def test_every_backbone_in_every_ablation_builds(backbone, clca):
    size = 112 if 'mini' in backbone else 448
    cell = Cell('soyglobal', backbone, 'ToMe', 0.25, size, clca, 1)
    model = compose(cell).model
    with torch.device('meta'):
        built = MODELS.build(model)
    assert built.head.num_classes == 1938
    assert (built.backbone.cache is None) == (clca in ('base', 'cla'))
    assert built.backbone.final_norm == (clca in ('base', 'clc'))
    assert built.backbone.img_size == (size, size)


BASE = ROOT / 'configs/_base_'


def write(path, text='a = 1'):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_ours():
    datasets = base_configs(DATASETS).keys()
    assert {'leaf40', 'cotton80', 'soyageing-r1', 'cub'} <= datasets
    assert not any('leaves_' in name for name in datasets)
    models = {'vit-base-p16', 'deit-tiny-p16', 'clca-tome_vit-base-p16'}
    assert models <= {*base_configs(MODEL_CONFIGS)}
    recipes = {'clca_50e', 'deit_300e', 'few_shot_20e', 'scratch_40e'}
    assert recipes <= {*base_configs(RECIPES)}


@pytest.mark.parametrize(
    'kind, name, file',
    [
        (MODEL_CONFIGS, 'vit-base-p16', 'models/clca-evit_vit-base-p16.py'),
        (MODEL_CONFIGS, 'clca-evit_vit-base-p16', None),
        (DATASETS, 'leaf40', 'datasets/leaf40_224.py'),
        (DATASETS, 'leaf40_224', None),
    ],
)
def test_short_and_whole_names(kind, name, file):
    assert find(kind, name) == BASE / (file or f'{kind}/{name}.py')


@pytest.mark.parametrize('base', ['.', '_base_'])
def test_a_folder_of_the_user_comes_first(tmp_path, base):
    folders, base = (tmp_path,), tmp_path / base
    mine = write(base / 'models/vit-base-p16.py')
    leaves = write(base / 'datasets/my-leaves_96.py')
    recipe = write(base / 'schedules/short.py')
    runtime = write(base / 'default_runtime.py')
    assert find(MODEL_CONFIGS, 'vit-base-p16', folders) == mine
    assert find(DATASETS, 'my-leaves', folders) == leaves
    assert find(RECIPES, 'short', folders) == recipe
    assert find(RUNTIME, 'default_runtime', folders) == runtime
    # what it does not have is ours
    assert (
        find(MODEL_CONFIGS, 'deit-tiny-p16', folders).parent == BASE / 'models'
    )
    assert find(RECIPES, 'clca_50e', folders).parent == BASE / 'schedules'


def test_whole_configs_are_models(tmp_path):
    mine = write(tmp_path / 'my_model.py')
    write(tmp_path / '__init__.py')
    assert find(MODEL_CONFIGS, 'my_model', (tmp_path,)) == mine
    assert '__init__' not in base_configs(MODEL_CONFIGS, (tmp_path,))


def test_what_is_not_there_and_where_was_looked(tmp_path):
    write(tmp_path / 'models/my-vit.py')
    with pytest.raises(ValueError) as error:
        find(MODEL_CONFIGS, 'my-vit2', (tmp_path,))
    said = str(error.value)
    assert said.startswith("no 'my-vit2' (do you mean my-vit?); choose from ")
    assert said.endswith(f'looked in {tmp_path}, {ROOT / "configs"}')
    assert '\n' not in said
