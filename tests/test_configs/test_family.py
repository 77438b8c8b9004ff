# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs for DeiT, DeiT III, parallel ViTs, CaiT, ResMLP, PatchConvNet."""

import re
from copy import deepcopy

import numpy as np
import pytest
import torch
from every_config import FAMILY, FOLDER, OTHERS, VITS, build, each
from mmengine.config import Config
from mmengine.runner import Runner
from PIL import Image

from mmclca.evaluation.cost import count
from mmclca.models import reduces
from mmclca.models.heads import CLAHead
from mmclca.models.reduction.reducers import EViT
from mmclca.registry import MODELS

DISTILLED = FOLDER / (
    'deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px.py'
)
RESNET = FOLDER / (
    'patchconvnet/attention-pool_resnet50_1xb32-50e_leaf40-224px.py'
)
PER_CLASS = 'patchconvnet-s60-per-class_1xb16-50e_leaf40-224px.py'
IMAGENET = [path for path in FAMILY if '_imagenet-' in path.stem]
LEAF40 = [path for path in FAMILY if '_leaf40-' in path.stem]
# datasets for pre-training and transfer
OTHER_SETS = dict(imagenet21k=19167, flowers=102, cifar100=100, inat18=8142)
CLASSES = dict(leaf40=40, imagenet=1000) | OTHER_SETS
NARROW = dict(
    _delete_=True,
    embed_dims=16,
    num_layers=2,
    num_heads=2,
    feedforward_channels=32,
)


def classes_of(path):
    """Return the number of classes in a config name's dataset."""
    return CLASSES[path.stem.split('_')[-1].split('-')[0]]


def test_each_family_has_leaf40_and_imagenet_configs():
    for paths in (LEAF40, IMAGENET):
        folders = {path.parent.name for path in paths}
        assert folders == {path.parent.name for path in FAMILY}
    assert len(folders) == 6
    others = {*FAMILY} - {*LEAF40} - {*IMAGENET}
    found = {path.stem.split('_')[-1].split('-')[0] for path in others}
    assert found == {*OTHER_SETS}


@each(VITS)
def test_vit_model_matches_config_name(path):
    model, name = build(path), path.stem
    backbone, first = model.backbone, model.backbone.layers[0]
    assert backbone.num_prefix == (2 if 'distilled' in name else 1)
    assert isinstance(model.head, CLAHead) == name.startswith('clca-')
    assert (backbone.cache is not None) == name.startswith(('clc-', 'clca-'))
    assert isinstance(backbone.reducer, EViT) == ('-evit-' in name)
    if 'evit' in name:
        assert backbone.reducer.keep_rates == (0.5,) * 3
    branches = len(first.branches) if hasattr(first, 'branches') else 1
    assert branches == (2 if 'x2-' in name else 1)
    stem = type(backbone.patch_embed).__name__
    assert stem == ('HMLPStem' if '-hmlp-' in name else 'PatchEmbed')
    assert model.head.num_classes == classes_of(path)


@each([path for path in OTHERS if 'resnet' not in path.stem])
def test_model_matches_config_name(path):
    model, name = build(path), path.stem
    backbone = model.backbone
    kind, depth = re.search(
        r'(cait|resmlp|patchconvnet)(?:-[a-z]+)?(\d+)', name
    ).groups()
    assert type(backbone).__name__.lower() == kind
    assert len(backbone.layers) == int(depth)
    assert reduces(backbone) == name.startswith('tome-kr50_')
    one = 'PerClassHead' if '-per-class' in name else 'LinearClsHead'
    assert type(model.head).__name__ == one
    assert model.head.num_classes == classes_of(path)


@pytest.fixture
def imagenet(tmp_path, monkeypatch):
    """Folder with eight images in the layout of mmpretrain's ImageNet."""
    root = tmp_path / 'imagenet'
    draw = np.random.default_rng(0)
    (root / 'meta').mkdir(parents=True)
    for split in ('train', 'val'):
        (root / split).mkdir()
        for n in range(8):
            image = draw.integers(0, 255, (60, 90, 3), np.uint8)
            Image.fromarray(image).save(root / split / f'{n}.png')
        lines = [f'{n}.png {100 * n}\n' for n in range(8)]
        (root / 'meta' / f'{split}.txt').write_text(''.join(lines))
    monkeypatch.setenv('MMCLCA_DATA', str(tmp_path))
    return tmp_path


@each([DISTILLED])
def test_imagenet_config_trains_with_mixed_labels(path, imagenet):
    """Only width, batch size and number of epochs are changed."""
    cfg = Config.fromfile(path)
    cfg.merge_from_dict(
        {
            'model.backbone.arch': NARROW,
            'model.head.in_channels': 16,
            'model.teacher': None,
            'train_cfg': dict(max_epochs=1, val_interval=1),
            'train_dataloader.batch_size': 4,
            'work_dir': str(imagenet / 'work'),
        }
    )
    for name in ('train', 'val'):
        loader = cfg[f'{name}_dataloader']
        loader.update(num_workers=0, persistent_workers=False)
    runner, scores = Runner.from_cfg(cfg), []

    def keep(model, given, named):
        if named['mode'] == 'loss':
            scores.extend(image.gt_score for image in named['data_samples'])

    runner.model.register_forward_pre_hook(keep, with_kwargs=True)
    runner.train()
    scores = torch.stack(scores)  # two batches with repeated augmentation
    assert scores.shape == (8, 1000)
    torch.testing.assert_close(scores.sum(1), torch.ones(8))
    assert ((scores > 0).sum(1) == 2).any()  # two images mixed
    logged = runner.message_hub.get_scalar('val/accuracy/top5')
    assert 0 <= logged.current() <= 100


def test_attention_pooling_on_resnet_has_cost_of_the_definition():
    model = deepcopy(build(RESNET))
    pooled = count(model, (224, 224)).flops
    model.neck = MODELS.build(dict(type='GlobalAveragePooling'))
    average = count(model, (224, 224)).flops
    assert pooled == pytest.approx(4.6e9, rel=0.015)  # as in the thesis
    assert average == pytest.approx(4.1e9, rel=0.01)
    N, d = 49, 2048
    projections = 2 * (N + 2) * d * d + 6 * d * d
    assert pooled - average == projections + (3 * N + 5) * d


def test_per_class_config_trains_pooling_and_head_only():
    model = build(RESNET.with_name(PER_CLASS))
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    parts = {name.split('.')[1] for name in trained}
    assert parts == {'pool', 'weight', 'bias'}
