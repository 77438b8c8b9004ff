# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ResMLP: counts, start values, what is exact, what is refused."""

from types import SimpleNamespace

import pytest
import torch
from mmcv.cnn.bricks import DropPath
from torch import nn

from mmclca.engine.testing import FuseHook, UnfuseHook
from mmclca.evaluation.cost import count
from mmclca.models import ResMLP, fuse
from mmclca.models.layers.resmlp_layer import COMMUNICATIONS
from mmclca.registry import MODELS

LN = dict(type='LN', eps=1e-6)


def small(**settings):
    """Of 16 channels, 3 layers and a grid of 4 x 3 patches."""
    arch = dict(embed_dims=16, num_layers=3)
    return ResMLP(arch, img_size=(16, 12), patch_size=4, **settings)


def images():
    torch.manual_seed(0)
    return torch.randn(2, 3, 16, 12)


def drawn(**settings):
    """A small one in float64 whose parameters are far from their start."""
    model = small(**settings).double().eval()
    torch.manual_seed(1)
    for param in model.parameters():
        nn.init.normal_(param, std=0.3)
    return model


@pytest.mark.parametrize(
    ('settings', 'params', 'gmacs'),
    [  # of S12, as the thesis' rounded figures imply
        (dict(ending='class_mlp'), 17_719_012, 3.013),
        (dict(norm_cfg=LN), 15_350_872, 3.010),
        (dict(with_post_beta=True), 15_350_872 + 12 * 2 * 384, 3.012),
        (dict(communication='none'), 14_887_528, 2.833),
        (dict(communication='mlp'), 18_587_224, 4.249),
        (dict(communication='conv'), 30_817_384, 5.954),
        (dict(communication='depthwise'), 14_933_608, 2.841),
        (dict(communication='separable'), 16_707_688, 3.188),
    ],
)
def test_counts_of_the_variants(settings, params, gmacs):
    head = dict(type='LinearClsHead', num_classes=1000, in_channels=384)
    backbone = dict(type='mmclca.ResMLP', **settings)
    with torch.device('meta'):
        model = MODELS.build(
            dict(type='ImageClassifier', backbone=backbone, head=head)
        )
    cost = count(model, (224, 224))
    assert cost.params == params
    assert cost.flops / 1e9 == pytest.approx(gmacs, rel=1e-3)


@pytest.mark.parametrize('kind', COMMUNICATIONS)
def test_without_factors_a_layer_gives_what_it_takes_to_the_bit(kind):
    (layer, *_) = small(communication=kind, layer_scale_init_value=0.0).layers
    x = torch.randn(2, 12, 16)
    assert torch.equal(layer(x), x)


def test_linear_layers_begin_truncated_normal():
    model = ResMLP(
        dict(embed_dims=32, num_layers=2),
        img_size=96,
        communication='mlp',
        ending='class_mlp',
    )
    convolution = model.patch_embed.projection.weight.clone()
    model.init_weights()
    assert torch.equal(model.patch_embed.projection.weight, convolution)
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert len(linears) == 2 * 4 + 2 * 3
    for linear in linears:
        assert not linear.bias.any()
        if linear.weight.numel() > 1000:
            assert linear.weight.std().item() == pytest.approx(0.02, rel=0.1)
    for norm in (model.norm, model.layers[0].norm1):
        assert (norm.alpha == 1).all() and not norm.beta.any()


def test_stochastic_depth_is_uniform_and_spares_the_ending():
    model = small(drop_path_rate=0.2, ending='class_mlp')
    rates = [
        [m.drop_prob for m in layers.modules() if isinstance(m, DropPath)]
        for layers in (model.layers, model.class_layers)
    ]
    assert rates == [3 * 2 * [0.2], 2 * 2 * [0.0]]


def test_the_grid_that_convolutions_see():
    mix = small(communication='depthwise').double().layers[0].mix
    nn.init.zeros_(mix[0].bias)
    mix[0].weight.data.zero_()[:, :, 1, 0] = 1.0  # the neighbour to the left
    x = torch.randn(2, 12, 16).double()
    grid, moved = x.view(2, 4, 3, 16), mix(x).view(2, 4, 3, 16)
    assert torch.equal(moved[:, :, 1:], grid[:, :, :-1])
    assert not moved[:, :, 0].any()


@pytest.mark.parametrize(
    'settings',
    [
        *(dict(communication=kind) for kind in COMMUNICATIONS),
        dict(norm_cfg=LN),
        dict(with_post_beta=True),
    ],
)
def test_fused_it_answers_the_same(settings):
    model = drawn(ending='class_mlp', **settings)
    holder = nn.ModuleDict(dict(model=model))
    with torch.no_grad():
        (before,) = model(images().double())
        assert fuse(fuse(holder)) is holder
        (after,) = model(images().double())
    torch.testing.assert_close(after, before, rtol=1e-12, atol=1e-12)
    layer = model.layers[0]
    assert not [*layer.norm2.parameters(), *layer.ffn.gamma2.parameters()]
    folded = not [*layer.norm1.parameters(), *layer.gamma1.parameters()]
    linear = settings.get('communication', 'linear') == 'linear'
    assert folded == linear


@pytest.mark.parametrize('size', [(16, 16), (20, 12), (15, 12)])
def test_images_of_another_size_are_refused_in_one_line(size):
    with pytest.raises(ValueError, match=r'\(16, 12\) px') as error:
        small()(torch.zeros(1, 3, *size))
    assert str(size) in str(error.value) and '\n' not in str(error.value)


def test_what_a_test_fuses_is_as_it_was_after_it():
    model = small(ending='class_mlp')
    runner, modules = SimpleNamespace(model=model), [*model.modules()]
    hook = FuseHook()
    hook.before_test_epoch(runner)
    assert not hasattr(model.class_layers[1].gamma1, 'weight')
    UnfuseHook(hook).after_test_epoch(runner)
    assert [*model.modules()] == modules
