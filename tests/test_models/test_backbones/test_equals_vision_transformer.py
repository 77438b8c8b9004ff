# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Without reducer and cache, equal to mmpretrain's ViT bit for bit."""

from copy import deepcopy
from inspect import signature

import pytest
import torch
from mmpretrain.models.backbones import VisionTransformer
from small_models import arch, images

from mmclca.models import TokenReductionViT

DROP = dict(
    drop_rate=0.2, drop_path_rate=0.3, layer_cfgs=dict(attn_drop_rate=0.2)
)
KAIMING = dict(type='Kaiming', layer='Conv2d', mode='fan_in')
VARIANTS = dict(
    default={},
    dropout=DROP,
    raw=dict(DROP, out_type='raw', out_indices=[0, 2, -1]),
    featmap=dict(out_type='featmap', out_indices=(1, 3)),
    avg_featmap=dict(out_type='avg_featmap', out_indices=range(4)),
    no_final_norm=dict(DROP, final_norm=False, out_indices=[1, 2, -1]),
    no_cls=dict(out_type='raw', with_cls_token=False),
    no_cls_featmap=dict(DROP, out_type='featmap', with_cls_token=False),
    no_cls_avg=dict(out_type='avg_featmap', with_cls_token=False),
    layer_scale=dict(DROP, layer_scale_init_value=0.1),
    pre_norm=dict(DROP, pre_norm=True, norm_cfg=dict(type='LN', eps=1e-5)),
    no_qkv_bias=dict(qkv_bias=False, in_channels=1),
    swiglu=dict(layer_cfgs=dict(ffn_type='swiglu_fused')),
    each_layer=dict(layer_cfgs=[dict(num_fcs=n) for n in (2, 3, 2, 3)]),
    rectangular=dict(img_size=(32, 48), out_type='featmap'),
    wide_patches=dict(patch_size=(8, 16), out_type='featmap'),
    overlapping=dict(patch_cfg=dict(stride=4), out_type='featmap'),
    interpolation=dict(interpolate_mode='bilinear'),
    frozen=dict(frozen_stages=2, layer_scale_init_value=0.1),
    init_cfg=dict(init_cfg=KAIMING),
)


@pytest.fixture(params=VARIANTS)
def options(request):
    defaults = dict(arch=arch(num_layers=4), img_size=32, patch_size=8)
    return dict(defaults, **VARIANTS[request.param])


def pair(options):
    """Both models, built, initialized and perturbed with the same seed."""
    models = []
    for kind in (TokenReductionViT, VisionTransformer):
        torch.manual_seed(1)
        model = kind(**deepcopy(options))
        model.init_weights()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
        models.append(model)
    return models


def features_and_gradients(model, x):
    model.zero_grad()
    x = x.clone().requires_grad_()
    torch.manual_seed(2)
    outs = model(x)
    sum(out.square().sum() for out in outs).backward()
    return [*outs, x.grad, *(p.grad for p in model.parameters())]


def equal(one, other):
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and torch.equal(one, other)


def test_variants_cover_every_argument():
    arguments = set(signature(VisionTransformer.__init__).parameters)
    used = {'arch'}.union(*VARIANTS.values())
    assert arguments - {'self'} == used


def equal_features(ours, theirs, x):
    pairs = zip(
        features_and_gradients(ours, x),
        features_and_gradients(theirs, x),
        strict=True,
    )
    return all(equal(one, other) for one, other in pairs)


def test_parameters_features_and_gradients_are_equal(options):
    ours, theirs = pair(options)
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad == other.requires_grad
    channels = options.get('in_channels', 3)
    for train, size in ((True, (32, 32)), (False, (30, 51))):
        ours.train(train)
        theirs.train(train)
        x = images(2, *size)[:, :channels]
        assert equal_features(ours, theirs, x)


def test_features_and_gradients_are_equal_in_bfloat16():
    options = dict(DROP, arch=arch(num_layers=4), img_size=32, patch_size=8)
    ours, theirs = (model.bfloat16() for model in pair(options))
    x = images(2, 40, 24).bfloat16()
    assert equal_features(ours, theirs, x)


def test_positional_arguments_and_arch_zoo_are_equal():
    torch.manual_seed(1)
    ours = TokenReductionViT('deit-tiny', 48, 16, 1, [3, -1]).eval()
    torch.manual_seed(1)
    theirs = VisionTransformer('deit-tiny', 48, 16, 1, [3, -1])
    theirs.eval()  # returns None
    x = images(1, 48)[:, :1]
    with torch.no_grad():
        for one, other in zip(ours(x), theirs(x), strict=True):
            assert torch.equal(one, other)
    assert TokenReductionViT.arch_zoo is VisionTransformer.arch_zoo
