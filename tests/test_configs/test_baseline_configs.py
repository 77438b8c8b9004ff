# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Baseline configs: data, recipe and model; the grid with CLCA."""

import re

import numpy as np
import pytest
from every_config import BASELINES, FOLDER, build, each, piece, read
from mmengine.dataset import Compose
from mmengine.optim import build_optim_wrapper
from mmpretrain.registry import MODELS, TRANSFORMS
from PIL import Image

from mmclca.sweep.grid import read_grid

SETS = dict(cotton80=80, soylocal=200, soygene=1110, soyageing=198)
SETS['soyglobal'] = 1938
KINDS = {
    'transfg': ('ContrastiveClassifier', 'TransFG', 'SGD', 0.03),
    'sim-trans': ('ContrastiveClassifier', 'SIMTrans', 'SGD', 0.03),
    'ffvt': ('DistilledClassifier', 'FFVT', 'SGD', 0.02),
    'cle-vit': ('CLEViTClassifier', 'SwinTransformer', 'AdamW', 12e-3 / 512),
}


def test_each_baseline_has_five_datasets():
    found = {
        tuple(re.match(r'([\w-]+?)_.*_(\w+)-\d+px', path.stem).groups())
        for path in BASELINES
    }
    assert found == {(kind, data) for kind in KINDS for data in SETS}
    assert len(BASELINES) == len(found)


@each([BASELINES[2], *BASELINES[5::3]])  # only one Swin-B, which is slow
def test_baseline_config_matches_its_name(path, tmp_path):
    kind, _, recipe, data = path.stem.split('_')
    data, size = re.fullmatch(r'(\w+)-(\d+)px', data).groups()
    cfg, model = read(path), build(path)
    classifier, backbone, optimizer, lr = KINDS[kind]
    assert type(model).__name__ == classifier
    assert type(model.backbone).__name__ == backbone
    assert model.head.num_classes == SETS[data]
    batch, length = re.fullmatch(r'\dxb(\d+)-(\d+)[ei]', recipe).groups()
    assert cfg.train_dataloader.batch_size == int(batch)
    lengths = {cfg.train_cfg.get('max_iters'), cfg.train_cfg.get('max_epochs')}
    assert int(length) in lengths
    wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    assert type(wrapper.optimizer).__name__ == optimizer
    twice = 1 + (path.stem.startswith('cle-vit') and data == 'soygene')
    groups = wrapper.param_groups
    assert min(g['lr'] for g in groups) == pytest.approx(lr * twice)
    flat = [g for g in groups if g['params'][0].ndim == 1]
    assert not any(g['weight_decay'] for g in flat)
    smoothing = 0.1 if kind == 'cle-vit' else 0
    assert cfg.model.get('label_smoothing', 0) == smoothing
    assert cfg.val_dataloader.dataset.split == 'test'
    Image.fromarray(np.zeros((90, 70, 3), np.uint8)).save(tmp_path / 'a.png')
    for loader, views in ((cfg.train_dataloader, 2), (cfg.test_dataloader, 1)):
        steps = map(TRANSFORMS.build, loader.dataset.to_dict()['pipeline'])
        inputs = Compose([*steps])(
            dict(img_path=str(tmp_path / 'a.png'), gt_label=0)
        )['inputs']
        wide = int(size) * (views if kind == 'cle-vit' else 1)
        assert inputs.shape == (3, int(size), wide)


def test_baseline_grid_has_one_recipe():
    configs = read_grid(FOLDER / 'sweeps/baselines.py').compose_configs()
    assert len(configs) == 33
    for part in ('optim_wrapper', 'param_scheduler', 'train_cfg'):
        first, *others = [cfg[part] for cfg in configs.values()]
        assert all(other == first for other in others)
    for cell, cfg in configs.items():
        views = any(
            step['type'] == 'mmclca.ShuffledView'
            for step in cfg.train_dataloader.dataset.pipeline
        )
        assert views == cell.backbone.startswith('cle-vit')
        assert cfg.model.backbone.get('drop_rate', 0) == 0
        assert cfg.model.backbone.img_size == cell.size


def test_ffvt_head_is_initialized_with_zeros():
    head = MODELS.build(piece('models/ffvt_vit-base-p16')['model']['head'])
    head.init_weights()
    assert not head.fc.weight.any()
