# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Initial weights and stochastic depth rates of the backbones."""

import pytest
import torch
from mmcv.cnn.bricks import DropPath
from small_models import arch, vit
from torch import nn

from mmclca.registry import MODELS

DEIT = dict(init_cfg=dict(type='mmclca.DeiTInit'), patch_size=16)
WIDE = arch(2, 64)
NARROW = dict(embed_dims=128, num_layers=1)
CAIT = dict(type='mmclca.CaiT', arch=WIDE, img_size=32, patch_size=8)
RESMLP = dict(
    type='mmclca.ResMLP',
    arch=dict(embed_dims=32, num_layers=2),
    img_size=96,
    token_mixer='mlp',
    pooling='class_mlp',
)
PATCH_CONVNET = dict(type='mmclca.PatchConvNet', arch=NARROW, img_size=32)
CONFIGS = [  # config and number of linear layers
    (dict(vit(2, **DEIT), arch=WIDE), 8),
    (dict(vit(2, branches=3, qkv_bias=False, **DEIT), arch=WIDE), 24),
    (CAIT, 2 * 6 + 2 * 6),
    (RESMLP, 2 * 4 + 2 * 3),
    (PATCH_CONVNET, 6),
    (dict(type='mmclca.AttentionPool', in_channels=64), 6),
]


def initialized(config):
    model = MODELS.build(config)
    model.init_weights()
    return model


@pytest.mark.parametrize('config, number', CONFIGS)
def test_linear_weights_are_truncated_normal_with_zero_bias(config, number):
    model = initialized(config)
    layers = [m for m in model.modules() if isinstance(m, nn.Linear)]
    assert len(layers) == number
    for layer in layers:
        # talking heads and class tokens have few weights
        rel = 0.1 if layer.weight.numel() > 1000 else 0.9
        std = layer.weight.square().mean().sqrt().item()
        assert std == pytest.approx(0.02, rel=rel)
        assert layer.bias is None or not layer.bias.any()


def test_tokens_and_positions_are_truncated_normal():
    both = ('cls_token', 'pos_embed')
    for config, names in (
        (CONFIGS[0][0], both),
        (CAIT, both),
        (PATCH_CONVNET, ('pool.cls_token',)),
    ):
        model = initialized(config)
        for name in names:
            std = model.get_parameter(name).std().item()
            assert std == pytest.approx(0.02, rel=0.3)


def test_deit_init_keeps_other_parameters():
    options = dict(
        layer_scale_init_value=1e-4,
        reducer=dict(type='mmclca.DynamicViT', keep_rate=0.5),
        reduce_at=1,
    )
    config = dict(vit(2, **DEIT, **options), arch=WIDE)
    torch.manual_seed(1)
    plain = initialized(dict(config, init_cfg=None))
    torch.manual_seed(1)
    model = initialized(config)
    assert (model.layers[1].ffn.gamma2.weight == 1e-4).all()
    assert (model.layers[0].ln2.weight == 1).all()
    for part in ('patch_embed.projection', 'reducer'):
        pairs = zip(
            plain.get_submodule(part).parameters(),
            model.get_submodule(part).parameters(),
            strict=True,
        )
        assert all(a.shape == b.shape and a.std() == b.std() for a, b in pairs)


def test_resmlp_keeps_convolution_and_starts_with_identity_affine():
    model = MODELS.build(RESMLP)
    convolution = model.patch_embed.projection.weight.clone()
    model.init_weights()
    assert torch.equal(model.patch_embed.projection.weight, convolution)
    for norm in (model.norm, model.layers[0].norm1):
        assert (norm.alpha == 1).all() and not norm.beta.any()


def test_patch_convnet_keeps_initialization_of_convolutions():
    model = initialized(PATCH_CONVNET)
    convs = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    assert len(convs) == 4 + 5
    for conv in convs:  # uniform within 1 / sqrt(inputs)
        bound = conv.weight[0].numel() ** -0.5
        assert 0.9 * bound < conv.weight.abs().max() <= bound
        assert conv.weight.mean().abs() < 0.1 * bound
    assert all(conv.bias.any() for conv in convs[4:])


def drop_rates(layers):
    return [
        {m.drop_prob for m in layer.modules() if isinstance(m, DropPath)}
        for layer in layers
    ]


def test_drop_path_mode_sets_rates_per_layer():
    config = vit(3, drop_path_rate=0.2, branches=2)
    rising = drop_rates(MODELS.build(config).layers)
    assert rising == [{0.0}, {0.1}, {0.2}]
    config.update(drop_path_mode='uniform')
    uniform = drop_rates(MODELS.build(config).layers)
    assert uniform == [{0.2}] * 3
    assert all(type(rate) is float for (rate,) in rising + uniform)


@pytest.mark.parametrize('config', [CAIT, RESMLP])
def test_drop_path_is_uniform_and_spares_class_layers(config):
    model = MODELS.build(dict(config, drop_path_rate=0.2))
    assert drop_rates(model.layers) == [{0.2}] * 2
    assert {0.2} not in drop_rates(model.class_layers)
