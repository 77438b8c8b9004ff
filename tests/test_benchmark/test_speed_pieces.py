# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Model configs for ``tools/benchmark/*.sh`` are comparable."""

import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope
from tiny_run import ROOT

from mmclca.registry import MODELS as REGISTRY

BASES = ROOT / 'configs/_base_/models'
MODELS = ROOT / 'configs/_base_/speed'


def config(path):
    return Config.fromfile(path).model.to_dict()


def test_parallel_and_sequential_models_have_equal_layer_counts():
    paths = [MODELS / f'vit-s_{name}.py' for name in ('36x1', '12x3', '9x4')]
    paths.append(BASES / 'par-vit-small-18x2-p16.py')
    models = [config(path) for path in paths]
    pairs = []
    for model in models:
        layers = model['backbone']['arch'].pop('num_layers')
        pairs.append(layers * model['backbone'].pop('branches'))
    assert pairs == [36] * 4
    assert all(model == models[0] for model in models)


def test_timm_models_have_equal_parameter_counts():
    counts = set()
    for path in (MODELS / 'resmlp-s12_timm.py', BASES / 'resmlp-s12-p16.py'):
        with (
            torch.device('meta'),
            DefaultScope.overwrite_default_scope('mmpretrain'),
        ):
            model = REGISTRY.build(config(path))
        counts.add(sum(param.numel() for param in model.parameters()))
    assert len(counts) == 1
