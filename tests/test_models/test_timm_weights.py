# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Convert trained classifiers to timm."""

import pytest
import timm
import torch
from foreign_models import HEAD, STYLES, config, images, ours, theirs
from timm.models.deit import VisionTransformerDistilled
from torch import nn

import mmclca
from mmclca.models import fuse
from mmclca.registry import MODELS

LINEAR = dict(HEAD, type='LinearClsHead')
NEAREST = dict(HEAD, type='mmclca.NearestLinearHead', num_references=3)
DISTILLED = dict(HEAD, type='mmclca.DistilledHead')
PARTS = dict(
    references=dict(head=NEAREST),
    registers=dict(num_registers=4),
    deit3=dict(with_cls_pos=False),
    average=dict(out_type='average'),
    average_norm=dict(out_type='avg_featmap', final_norm=False),
)
IN_TIMM = dict(
    registers=dict(reg_tokens=4, no_embed_class=True),
    average=dict(global_pool='avg', fc_norm=False),
    average_norm=dict(global_pool='avg'),
)


def check_equal(here, there):
    with torch.no_grad():
        for parameter in here.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    here, there, x = here.double().eval(), there.double().eval(), images()
    there.load_state_dict(mmclca.to_timm(here), strict=True)
    with torch.no_grad():
        assert (here(x) - there(x)).abs().max() < 1e-10


@pytest.mark.parametrize('kind', {**STYLES, **PARTS})
def test_timm_loads_strictly_with_equal_logits(kind):
    style = kind if kind in STYLES else 'plain'
    here = ours(style, **PARTS.get(kind, {}))
    check_equal(here, theirs(style, **IN_TIMM.get(kind, {})))


def test_distilled_deit_loads_in_timm():
    sizes = dict(img_size=32, patch_size=8, embed_dim=16, num_heads=2)
    sizes |= dict(depth=3, mlp_ratio=2, num_classes=5)
    here = ours(dist_token=True, head=DISTILLED)
    check_equal(here, VisionTransformerDistilled(**sizes))


def classifier(head=LINEAR, **backbone):
    model = dict(type='ImageClassifier', backbone=backbone, head=head)
    return MODELS.build(model)


def test_plain_mmpretrain_classifier_loads_in_timm():
    head = dict(LINEAR, in_channels=192)
    vit = dict(type='VisionTransformer', arch='deit-tiny', img_size=32)
    name, sizes = 'deit_tiny_patch16_224', dict(num_classes=5, img_size=32)
    check_equal(classifier(head, **vit), timm.create_model(name, **sizes))


def test_reducer_without_parameters_is_left_out():
    evit = dict(type='mmclca.EViT', keep_rate=0.5)
    weights = mmclca.to_timm(ours(reducer=evit, reduce_at=(1,)))
    theirs().load_state_dict(weights, strict=True)


def hmlp():
    model = config()
    model['backbone'] |= dict(patch_size=16, stem=dict(type='mmclca.HMLPStem'))
    return MODELS.build(model)


DYNAMIC = dict(type='mmclca.DynamicViT', keep_rate=0.5)
REFUSED = {
    'CrossLayerCache, CLAHead': lambda: ours(cla=True),
    'DynamicViT': lambda: ours(reducer=DYNAMIC, reduce_at=(1,)),
    'relative_position': lambda: ours(rel_pos_bias=True),
    'out_indices': lambda: ours(out_indices=1),
    'average': lambda: ours(out_type='average', num_registers=2),
    'ln1.weight': lambda: ours(out_type='avg_featmap'),
    'output': lambda: ours(
        dist_token=True, head=dict(DISTILLED, output='cls')
    ),
    'pre_logits': lambda: ours(head=dict(HEAD, hidden_dim=8)),
    'projection': hmlp,
    'norm1': lambda: fuse(ours('parallel')),
    'NoneType': lambda: classifier(None, **config()['backbone']),
    'Linear': lambda: nn.Linear(2, 2),
}


@pytest.mark.parametrize('reason', REFUSED)
def test_model_is_refused_if_timm_has_no_equal(reason):
    with pytest.raises(ValueError, match=f'^.*{reason}.*$'):
        mmclca.to_timm(REFUSED[reason]())
