# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Rename tables, also for a new backbone."""

import pytest
import torch
import toy_backbones  # noqa: F401, registers them
from foreign_models import write

from mmclca.checkpoints import families, rename
from mmclca.checkpoints.error import CheckpointError
from mmclca.checkpoints.families import FAMILIES, Family
from mmclca.checkpoints.load import load
from mmclca.checkpoints.rename import recognize, rename_to_classifier
from mmclca.registry import MODELS

TABLE = Family(
    mark=r'stage\d+\.',
    renames=(
        (r'stage(\d+)\.', r'backbone.layers.\1.'),
        (r'classifier\.', 'head.fc.'),
        (r'start$', 'backbone.prefix'),
    ),
    left_out='teacher_',
    values=(('start', 'start', lambda x: x[None]),),
)


def toy(channels=24):
    backbone = dict(type='mmclca.ToyReducible', channels=channels)
    head = dict(type='LinearClsHead', num_classes=3, in_channels=channels)
    kind = 'mmclca.TokenReductionClassifier'
    model = MODELS.build(dict(type=kind, backbone=backbone, head=head))
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model


def foreign(model):
    """Weights with foreign names."""
    weights = {'teacher_temperature': torch.ones(1)}
    for name, value in model.state_dict().items():
        name = name.removeprefix('backbone.').replace('layers.', 'stage')
        name = name.replace('head.fc.', 'classifier.')
        weights[name] = value
    weights['start'] = weights.pop('prefix')[0]
    return weights


def test_new_backbone_loads_with_a_table(tmp_path, monkeypatch):
    there, here = toy(), toy()
    path = write(tmp_path / 'toy.pth', {'model': foreign(there)})
    with pytest.raises(CheckpointError, match='ToyReducible'):
        load(here, path, strict=False)
    monkeypatch.setattr(rename, 'FAMILIES', (TABLE, *FAMILIES))
    report = load(here, path)
    for name, value in there.state_dict().items():
        assert torch.equal(value, here.state_dict()[name]), name
    assert report.loaded == [*here.state_dict()]
    assert report.unused == ['teacher_temperature']
    assert not report.new and not report.resized
    load(toy().backbone, path)


def test_backbone_is_checked_if_reducible(tmp_path):
    path = write(tmp_path / 'toy.pth', toy(48).state_dict())
    with pytest.raises(CheckpointError, match=r'ToyReducible .* 24'):
        load(toy(), path, strict=False)


BLOCK = 'blocks.0.norm1.weight'
RESBLOCK = 'transformer.resblocks.0.x'
TOKEN_ONLY = 'blocks_token_only.0.gamma_1'
RECOGNIZED = [
    ('VIT', '', BLOCK),
    ('VIT', 'backbone.', 'head.0.bias', f'backbone.{BLOCK}'),
    ('TOKEN_REDUCTION', '', BLOCK, 'clr'),
    ('CLCA', '', 'clr', BLOCK, 'ifa_head.0.1.bias'),
    ('CLIP', 'visual.', RESBLOCK, f'visual.{RESBLOCK}'),
    ('PARALLEL_VIT', '', 'blocks.0.norm1.bias', 'blocks.0.norm11.bias'),
    ('PARALLEL_VIT', '', 'blocks.0.attns.0.norm.bias'),
    ('CAIT', '', 'blocks.0.gamma_1', TOKEN_ONLY),
    ('RESMLP', '', 'blocks.0.gamma_1', 'blocks.0.norm1.alpha'),
    ('RESMLP', '', 'stem.proj.weight', 'blocks.0.linear_tokens.bias'),
    ('PATCH_CONVNET', '', TOKEN_ONLY, 'blocks.0.attn.qkv_pos.0.bias'),
    ('BARE', '', 'layers.0.ln1.weight'),
]


@pytest.mark.parametrize('case', RECOGNIZED)
def test_family_is_recognized_by_names(case):
    family, encoder, *names = case
    known = vars(families.vit) | vars(families.deit_repository)
    assert recognize(names) == (known[family], encoder)


def test_class_heads_are_stacked_by_number():
    """Some files are sorted alphabetically: 10 before 2."""
    weights = {'blocks.0.attn.qkv_pos.0.bias': torch.zeros(2)}
    for k in sorted(map(str, range(12))):
        weights[f'head.{k}.weight'] = torch.full((1, 2), float(k))
        weights[f'head.{k}.bias'] = torch.full((1,), float(k))
    rename_to_classifier(weights, '')
    assert torch.equal(weights.pop('head.bias'), torch.arange(12.0))
    rows = weights.pop('head.weight')
    assert torch.equal(rows, torch.arange(12.0)[:, None].repeat(1, 2))
    assert [*weights] == ['backbone.layers.0.conv1.bias']


def test_own_classifier_is_not_renamed():
    assert recognize(['backbone.layers.0.ln1.weight', 'head.fc.bias']) is None
