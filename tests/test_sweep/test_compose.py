# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Composed configs of runs compared with the config files."""

from dataclasses import replace

import pytest
import torch
from mmengine.config import Config
from sweep_results import compose
from tiny_run import ROOT

from mmclca.datasets.pipelines import set_image_size
from mmclca.registry import MODELS
from mmclca.sweep.base_configs import (
    DATASETS,
    RECIPES,
    RUNTIME,
    find,
    list_base_configs,
    read,
)
from mmclca.sweep.base_configs import MODELS as MODEL_CONFIGS
from mmclca.sweep.runs import ABLATIONS, RunKey

KEY = RunKey('leaf40', 'deit-tiny-p16', 'EViT', 0.25, 224, 'clca', 2)
COTTON = RunKey('cotton80', 'deit3-base-p16', 'EViT', 0.1, 448, 'clca', 1)
SAME = (
    *('model', 'load_from', 'optim_wrapper', 'param_scheduler', 'train_cfg'),
    *('train_dataloader', 'test_dataloader'),
)


def names_of(key):
    ablation = '' if key.clca == 'base' else f'{key.clca}-'
    return (
        f'{ablation}{key.method.lower()}-kr{100 * key.keep_rate:g}_'
        f'{key.backbone}_1xb32-50e_{key.dataset}-{key.size}px.py'
    )


@pytest.mark.parametrize(
    'key',
    [
        KEY,
        *(replace(COTTON, clca=clca) for clca in ABLATIONS),
        replace(COTTON, method='ATS', keep_rate=0.5, backbone='vit-base-p16'),
    ],
    ids=lambda key: key.name,
)
def test_composed_config_equals_config_file(key):
    cfg = compose(key)
    file = Config.fromfile(ROOT / 'configs/clca' / names_of(key))
    for loader in (file.train_dataloader, file.test_dataloader):
        set_image_size(loader.dataset.pipeline, key.size)
    for name in SAME:
        assert cfg[name] == file[name]


def test_data_folder_follows_the_environment(monkeypatch):
    for folder in ('here', 'there'):
        monkeypatch.setenv('MMCLCA_DATA', folder)
        cfg = compose(KEY)
        root = cfg.train_dataloader.dataset.data_root
        assert root == f'{folder}/leaf40_white'


def test_compose_sets_seed_weights_options_and_hooks():
    optimizer = dict(_delete_=True, type='Lamb', lr=3e-3)
    options = {'optim_wrapper.optimizer': optimizer}
    for seed in (1, 2):  # options with _delete_ are reusable
        key = replace(KEY, seed=seed)
        cfg = compose(key, options, {'deit-tiny-p16': 'file.pth'})
        assert cfg.randomness.seed == seed
        assert cfg.optim_wrapper.optimizer == dict(type='Lamb', lr=3e-3)
    assert cfg.load_from == 'file.pth'
    assert cfg.custom_hooks[-1].type == 'mmclca.GradientStatsHook'
    assert cfg.val_cfg is None
    assert compose(KEY).optim_wrapper.optimizer.lr == 1e-4


def test_compose_sets_num_classes_for_mixup():
    augments = [dict(type='Mixup', alpha=0.8)]
    cfg = compose(KEY, {'model.train_cfg': dict(augments=augments)})
    assert cfg.model.data_preprocessor.num_classes == 40
    assert 'num_classes' not in compose(KEY).model.data_preprocessor


def test_method_none_is_the_full_vit():
    key = replace(KEY, method='none', keep_rate=1.0, clca='base')
    assert key.name == 'leaf40-224px_deit-tiny-p16_none-kr100_base_seed2'
    backbone = compose(key).model.backbone
    assert backbone.reducer is None and backbone.reduce_at == ()


def test_compose_sets_the_image_size():
    cfg = compose(replace(COTTON, size=224))
    assert cfg.model.backbone.img_size == 224
    (cached, *others) = cfg.train_dataloader.dataset.pipeline
    assert cached.transforms[1].scale == (256, 256)
    assert others[0].crop_size == (224, 224)
    assert cfg.test_dataloader.dataset.pipeline[1].scale == (256, 256)
    assert cfg.test_dataloader.dataset.pipeline[2].crop_size == (224, 224)
    crop = dict(type='RandomResizedCrop', scale=99, backend='pillow')
    pipeline = [dict(type='LoadImageFromFile'), crop]
    set_image_size(pipeline, 100)
    assert pipeline[0] == dict(type='LoadImageFromFile')
    assert crop['scale'] == (100, 100) and crop['backend'] == 'pillow'


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


def check_ablation(backbone, clca):
    size = 112 if 'mini' in backbone else 448
    key = RunKey('soyglobal', backbone, 'ToMe', 0.25, size, clca, 1)
    model = compose(key).model
    with torch.device('meta'):
        built = MODELS.build(model)
    assert built.head.num_classes == 1938, backbone
    has_no_cache = clca in ('base', 'cla')
    assert (built.backbone.cache is None) == has_no_cache, backbone
    assert built.backbone.final_norm == (clca in ('base', 'clc')), backbone
    assert built.backbone.img_size == (size, size), backbone


def test_base_vit_is_built_with_both_losses():
    check_ablation('vit-base-p16', 'clca')


@pytest.mark.slow
@pytest.mark.parametrize('clca', ABLATIONS)
def test_every_backbone_is_built_in_every_ablation(clca):
    backbones = [*filter(has_ablations, list_base_configs(MODEL_CONFIGS))]
    assert 'vit-base-p16' in backbones
    for backbone in backbones:
        check_ablation(backbone, clca)


BASE = ROOT / 'configs/_base_'


def write(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('a = 1')
    return path


def test_base_configs_include_ours():
    datasets = list_base_configs(DATASETS).keys()
    assert {'leaf40', 'cotton80', 'soyageing-r1', 'cub'} <= datasets
    assert not any('leaves_' in name for name in datasets)
    models = {'vit-base-p16', 'deit-tiny-p16', 'clca-tome_vit-base-p16'}
    assert models <= {*list_base_configs(MODEL_CONFIGS)}
    for kind, names in (
        (MODEL_CONFIGS, ('vit-base-p16', 'clca-evit_vit-base-p16')),
        (DATASETS, ('leaf40', 'leaf40_224')),
        (RECIPES, ('clca_50e',)),
    ):
        for name in names:
            assert find(kind, name) == BASE / kind / f'{names[-1]}.py'


@pytest.mark.parametrize('base', ['.', '_base_'])
def test_user_folders_take_precedence(tmp_path, base):
    folders, base = (tmp_path,), tmp_path / base
    for kind, name, file in (
        (MODEL_CONFIGS, 'vit-base-p16', 'models/vit-base-p16'),
        (DATASETS, 'my-leaves', 'datasets/my-leaves_96'),
        (RECIPES, 'short', 'schedules/short'),
        (RUNTIME, 'default_runtime', 'default_runtime'),
    ):
        mine = write(base / f'{file}.py')
        assert find(kind, name, folders) == mine
    # fall back to our base configs
    recipe = find(RECIPES, 'clca_50e', folders)
    assert recipe.parent == BASE / 'schedules'
    with pytest.raises(ValueError, match=f'leavez.*my-leaves.*{tmp_path}'):
        find(DATASETS, 'my-leavez', folders)


def test_complete_configs_are_model_configs(tmp_path):
    mine = write(tmp_path / 'my_model.py')
    write(tmp_path / '__init__.py')
    assert find(MODEL_CONFIGS, 'my_model', (tmp_path,)) == mine
    assert '__init__' not in list_base_configs(MODEL_CONFIGS, (tmp_path,))
