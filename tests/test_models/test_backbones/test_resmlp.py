# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ResMLP: counts, token mixers, fusing, image sizes."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from mmclca.engine.testing import FuseHook, UnfuseHook
from mmclca.evaluation.cost import count
from mmclca.models import fuse
from mmclca.models.backbones import ResMLP
from mmclca.models.layers.resmlp_layer import TOKEN_MIXERS
from mmclca.registry import MODELS

LN = dict(type='LN', eps=1e-6)


def small(**settings):
    """16 channels, 3 layers and 4 x 3 patches."""
    arch = dict(embed_dims=16, num_layers=3)
    return ResMLP(arch, img_size=(16, 12), patch_size=4, **settings)


def images():
    torch.manual_seed(0)
    return torch.randn(2, 3, 16, 12)


@pytest.mark.parametrize(
    ('settings', 'params', 'gmacs'),
    [  # S12, consistent with the rounded figures in the thesis
        (dict(pooling='class_mlp'), 17_719_012, 3.013),
        (dict(with_post_beta=True), 15_350_872 + 12 * 2 * 384, 3.012),
        (dict(token_mixer='mlp'), 18_587_224, 4.249),
        (dict(token_mixer='conv'), 30_817_384, 5.954),
        (dict(token_mixer='separable'), 16_707_688, 3.188),
    ],
)
def test_parameters_and_gmacs_of_variants(settings, params, gmacs):
    head = dict(type='LinearClsHead', num_classes=1000, in_channels=384)
    backbone = dict(type='mmclca.ResMLP', **settings)
    with torch.device('meta'):
        model = MODELS.build(
            dict(type='ImageClassifier', backbone=backbone, head=head)
        )
    cost = count(model, (224, 224))
    assert cost.params == params
    assert cost.flops / 1e9 == pytest.approx(gmacs, rel=1e-3)


def test_convolution_mixes_neighbors_in_grid():
    mix = small(token_mixer='depthwise').double().layers[0].mix
    nn.init.zeros_(mix[0].bias)
    mix[0].weight.data.zero_()[:, :, 1, 0] = 1.0  # the left neighbor
    x = torch.randn(2, 12, 16).double()
    grid, moved = x.view(2, 4, 3, 16), mix(x).view(2, 4, 3, 16)
    assert torch.equal(moved[:, :, 1:], grid[:, :, :-1])
    assert not moved[:, :, 0].any()


@pytest.mark.parametrize(
    'settings',
    [
        *(dict(token_mixer=kind) for kind in TOKEN_MIXERS),
        dict(norm_cfg=LN),
        dict(with_post_beta=True),
    ],
)
def test_fuse_keeps_outputs(settings):
    model = small(pooling='class_mlp', **settings).double().eval()
    for param in model.parameters():
        nn.init.normal_(param, std=0.3)
    holder = nn.ModuleDict(dict(model=model))
    with torch.no_grad():
        (before,) = model(images().double())
        assert fuse(fuse(holder)) is holder
        (after,) = model(images().double())
    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)
    layer = model.layers[0]
    assert not [*layer.norm2.parameters(), *layer.ffn.gamma2.parameters()]
    folded = not [*layer.norm1.parameters(), *layer.gamma1.parameters()]
    linear = settings.get('token_mixer', 'linear') == 'linear'
    assert folded == linear


def test_forward_refuses_other_image_sizes():
    with pytest.raises(ValueError, match=r'\(16, 12\) px'):
        small()(torch.zeros(1, 3, 16, 16))


def test_unfuse_hook_restores_modules():
    model = small(pooling='class_mlp')
    runner, modules = SimpleNamespace(model=model), [*model.modules()]
    hook = FuseHook()
    hook.before_test_epoch(runner)
    assert not hasattr(model.class_layers[1].gamma1, 'weight')
    UnfuseHook(hook).after_test_epoch(runner)
    assert [*model.modules()] == modules
