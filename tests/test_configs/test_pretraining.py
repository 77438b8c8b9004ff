# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Configs for pre-training and fine-tuning."""

import re

import pytest
import torch
from every_config import PRETRAINING, build, build_optimizer, each, read
from mmengine.registry import PARAM_SCHEDULERS, DefaultScope

from mmclca.models import TokenReductionClassifier

BEFORE = [p for p in PRETRAINING if re.search('_(in1k|leaves)-', p.stem)]
AFTER = [path for path in PRETRAINING if path not in BEFORE]
AFTER = [path for path in AFTER if 'clca' not in path.stem]
RECIPES = [
    path
    for path in BEFORE
    if '_in1k-' in path.stem and 'beit' not in path.stem
]
SEGMENTS = {'small-54': (6, 9), 'base': (2, 6), 'base-24': (4, 6)}


@each(RECIPES)
def test_pretraining_recipe_matches_config_name(path):
    """Check learning rate, schedule, epochs and batch size."""
    cfg, gpus = read(path), re.search(r'_(\d+)xb(\d+)-(\d+)e', path.stem)
    gpus, per_gpu, epochs = map(int, gpus.groups())
    assert cfg.train_dataloader.batch_size == per_gpu
    batch = gpus * per_gpu
    assert cfg.auto_scale_lr.base_batch_size == batch
    assert cfg.train_cfg.max_epochs == epochs
    optimizer = cfg.optim_wrapper.optimizer
    assert optimizer.lr == pytest.approx(1.5e-4 * batch / 256)
    warmup, fall = cfg.param_scheduler
    assert (warmup.end, fall.begin) == (40, 40)
    assert fall.get('end', epochs) == epochs
    assert 'val_dataloader' not in cfg


@each(RECIPES)
def test_learning_rate_warms_up_and_decays(path):
    """40 warm-up epochs, then decay to a hundredth or less."""
    cfg, parameter = read(path), torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    schedulers = []
    for options in cfg.param_scheduler:
        options = dict(options, by_epoch=True)
        options.pop('convert_to_iter_based', None)
        default = dict(optimizer=optimizer)
        built = PARAM_SCHEDULERS.build(options, default_args=default)
        schedulers.append(built)
    rates = []
    for _ in range(cfg.train_cfg.max_epochs):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    assert rates[0] < 0.01 and rates[40] == pytest.approx(1.0)
    assert 0 <= rates[-1] < 0.0101
    if 'step' in path.stem:  # at 90 and 95% of all epochs
        falls = [rates[i] for i in (269, 270, 284, 285)]
        assert falls == pytest.approx([1.0, 0.1, 0.1, 0.01])


@each([path for path in RECIPES if '-300e_' in path.stem])
def test_segments_match_config_name(path):
    model = build(path)
    name = re.search('vit-([a-z]+(-[0-9]+)?)-p16', path.stem)[1]
    segments, layers = SEGMENTS.get(name, (6, 8))
    assert model.backbone.num_segments == segments
    assert len(model.backbone.layers) == segments * layers


@each([path for path in AFTER if path.parent.stem != 'beit'][::2])
def test_fine_tuning_has_layer_wise_decay(path):
    """Norm after average pooling; layer-wise learning rate decay."""
    model, cfg = build(path), read(path)
    assert type(model) is TokenReductionClassifier
    backbone = model.backbone
    assert (backbone.out_type, backbone.final_norm) == ('avg_featmap', False)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        wrapper = build_optimizer(model, cfg.optim_wrapper)
    rates = {id(p): g['lr'] for g in wrapper.param_groups for p in g['params']}
    rates = {n: rates[id(p)] for n, p in model.named_parameters()}
    decay = cfg.optim_wrapper.paramwise_cfg.layer_decay_rate
    base = cfg.optim_wrapper.optimizer.lr
    depth = len(backbone.layers)
    stem = rates['backbone.patch_embed.projection.weight']
    assert stem == pytest.approx(base * decay ** (depth + 1))
    last = f'backbone.layers.{depth - 1}.attn.qkv.weight'
    assert rates[last] == pytest.approx(base * decay)
    assert rates['head.fc.weight'] == rates['backbone.ln2.weight'] == base
