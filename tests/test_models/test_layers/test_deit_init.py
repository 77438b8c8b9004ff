# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Initial weights of DeiT: drawn last, and where they belong."""

import pytest
import small_models
import torch
from small_models import arch
from torch import nn

from mmclca.registry import MODELS

DEIT = dict(type='mmclca.DeiTInit')


def vit(init_cfg=DEIT, **options):
    sizes = dict(init_cfg=init_cfg, patch_size=16)
    config = small_models.vit(2, **sizes, **options)
    model = MODELS.build(dict(config, arch=arch(2, 64)))
    model.init_weights()
    return model


def linears(model):
    return [m for m in model.layers.modules() if isinstance(m, nn.Linear)]


@pytest.mark.parametrize(
    'options', [{}, dict(qkv_bias=False), dict(branches=3)]
)
def test_every_linear_weight_is_a_normal_one(options):
    layers = linears(vit(**options))
    assert len(layers) == 2 * options.get('branches', 1) * 4
    for layer in layers:
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
        assert layer.bias is None or not layer.bias.any()


def test_tokens_and_positions():
    model = vit()
    for token in (model.cls_token, model.pos_embed):
        assert token.std().item() == pytest.approx(0.02, rel=0.3)


def test_the_rest_stays_as_built():
    """Norms, layer scale, the convolution and the parts of a reducer."""
    options = dict(
        layer_scale_init_value=1e-4,
        reducer=dict(type='mmclca.DynamicViT', keep_rate=0.5),
        reduce_at=1,
    )
    torch.manual_seed(1)
    plain = vit(None, **options)
    torch.manual_seed(1)
    model = vit(**options)
    assert (model.layers[1].ffn.gamma2.weight == 1e-4).all()
    assert (model.layers[0].ln2.weight == 1).all()
    for part in ('patch_embed.projection', 'reducer'):
        pairs = zip(
            plain.get_submodule(part).parameters(),
            model.get_submodule(part).parameters(),
            strict=True,
        )
        assert all(a.shape == b.shape and a.std() == b.std() for a, b in pairs)


def test_it_works_on_a_classifier():
    config = small_models.classifier(small_models.vit(1), init_cfg=DEIT)
    model = MODELS.build(config)
    model.init_weights()
    weight = model.backbone.layers[0].ffn.layers[1].weight
    assert weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert model.backbone.cls_token.any()
