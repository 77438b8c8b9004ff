# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Composed cell configs compared with the config files."""

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
def test_cell_config_equals_config_file(cell):
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


def test_data_folder_follows_the_environment(monkeypatch):
    for folder in ('here', 'there'):
        monkeypatch.setenv('MMCLCA_DATA', folder)
        cfg = compose(CELL)
        root = cfg.train_dataloader.dataset.data_root
        assert root == f'{folder}/leaf40_white'


def test_compose_sets_seed_weights_options_and_hooks():
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


def test_options_are_reusable_with_delete():
    optimizer = dict(_delete_=True, type='Lamb', lr=3e-3)
    options = {'optim_wrapper.optimizer': optimizer}
    for seed in (1, 2):
        cfg = compose(replace(CELL, seed=seed), options)
        assert cfg.optim_wrapper.optimizer == dict(type='Lamb', lr=3e-3)


def test_compose_sets_num_classes_for_mixup():
    augments = [dict(type='Mixup', alpha=0.8)]
    cfg = compose(CELL, {'model.train_cfg': dict(augments=augments)})
    assert cfg.model.data_preprocessor.num_classes == 40
    assert 'num_classes' not in compose(CELL).model.data_preprocessor


def test_method_none_is_the_full_vit():
    cell = replace(CELL, method='none', keep_rate=1.0, clca='base')
    assert cell.name == 'leaf40-224px_deit-tiny-p16_none-kr100_base_seed2'
    backbone = compose(cell).model.backbone
    assert backbone.reducer is None and backbone.reduce_at == ()


def test_compose_sets_the_image_size():
    cfg = compose(replace(COTTON, size=224))
    assert cfg.model.backbone.img_size == 224
    (cached, *others) = cfg.train_dataloader.dataset.pipeline
    assert cached.transforms[1].scale == (256, 256)
    assert others[0].crop_size == (224, 224)
    assert cfg.test_dataloader.dataset.pipeline[1].scale == (256, 256)
    assert cfg.test_dataloader.dataset.pipeline[2].crop_size == (224, 224)


def test_image_size_is_set_in_random_resized_crop():
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
    """Whether a config classifies the CLS token of our ViT."""
    model = read(find(MODEL_CONFIGS, name)).get('model', {})
    backbone = dict(type=None, out_type='cls_token') | model['backbone']
    return (
        'head' in model
        and not name.startswith('lf')
        and backbone['type'] == 'mmclca.TokenReductionViT'
        and backbone['out_type'] == 'cls_token'
    )


CLCA_CONFIGS = list(filter(has_ablations, base_configs(MODEL_CONFIGS)))
QUICK = ('vit-base-p16', 'clca')


@pytest.mark.parametrize(
    'backbone, clca',
    [
        pytest.param(*pair, marks=[pytest.mark.slow] * (pair != QUICK))
        for pair in product(CLCA_CONFIGS, ABLATIONS)
    ],
)
def test_every_backbone_builds_in_every_ablation(backbone, clca):
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


def test_base_configs_include_ours():
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
def test_base_configs_are_found_by_short_and_full_names(kind, name, file):
    assert find(kind, name) == BASE / (file or f'{kind}/{name}.py')


@pytest.mark.parametrize('base', ['.', '_base_'])
def test_user_folders_take_precedence(tmp_path, base):
    folders, base = (tmp_path,), tmp_path / base
    mine = write(base / 'models/vit-base-p16.py')
    leaves = write(base / 'datasets/my-leaves_96.py')
    recipe = write(base / 'schedules/short.py')
    runtime = write(base / 'default_runtime.py')
    assert find(MODEL_CONFIGS, 'vit-base-p16', folders) == mine
    assert find(DATASETS, 'my-leaves', folders) == leaves
    assert find(RECIPES, 'short', folders) == recipe
    assert find(RUNTIME, 'default_runtime', folders) == runtime
    # fall back to our base configs
    assert (
        find(MODEL_CONFIGS, 'deit-tiny-p16', folders).parent == BASE / 'models'
    )
    assert find(RECIPES, 'clca_50e', folders).parent == BASE / 'schedules'


def test_complete_configs_are_model_configs(tmp_path):
    mine = write(tmp_path / 'my_model.py')
    write(tmp_path / '__init__.py')
    assert find(MODEL_CONFIGS, 'my_model', (tmp_path,)) == mine
    assert '__init__' not in base_configs(MODEL_CONFIGS, (tmp_path,))


def test_unknown_base_config_is_refused(tmp_path):
    write(tmp_path / 'models/my-vit.py')
    with pytest.raises(ValueError, match=f'my-vit2.*my-vit.*{tmp_path}'):
        find(MODEL_CONFIGS, 'my-vit2', (tmp_path,))
