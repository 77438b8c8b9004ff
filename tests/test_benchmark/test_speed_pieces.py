# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The models of ``tools/benchmark/family.sh`` can be compared."""

import re

from mmengine.config import Config
from tiny_run import ROOT

SCRIPT = ROOT / 'tools/benchmark/family.sh'
PIECES = ROOT / 'configs/_base_/models'
MODELS = ROOT / 'configs/_base_/speed'


def config(path):
    return Config.fromfile(path).model.to_dict()


def test_every_model_is_measured():
    script = SCRIPT.read_text()
    named = re.findall(r'\$models/(\S+\.py)', script)
    assert sorted({*named}) == sorted(path.name for path in MODELS.iterdir())
    pieces = re.findall(r'configs/_base_/models/(\S+\.py)', script)
    assert all((PIECES / name).exists() for name in pieces)


def test_branches_have_the_attentions_and_ffns_of_the_sequence():
    paths = [MODELS / f'vit-s_{name}.py' for name in ('36x1', '12x3', '9x4')]
    paths.append(PIECES / 'par-vit-small-18x2-p16.py')
    models = [config(path) for path in paths]
    pairs = []
    for model in models:
        layers = model['backbone']['arch'].pop('num_layers')
        pairs.append(layers * model['backbone'].pop('branches'))
    assert pairs == [36] * 4
    assert all(model == models[0] for model in models)


def test_stems_differ_in_nothing_else():
    linear = config(MODELS / 'vit-s_linear.py')
    for name in ('hmlp-bn', 'hmlp-ln', 'conv'):
        model = config(MODELS / f'vit-s_{name}.py')
        assert model['backbone'].pop('stem')
        assert model == linear
