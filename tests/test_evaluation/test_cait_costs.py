# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of CaiT, by formula and in Touvron's thesis (2022).

The counter adds LayerNorm, one multiply-accumulate per element.
"""

import pytest
import torch

from mmclca.evaluation.cost import count
from mmclca.registry import MODELS

DIMS, CLASSES = 384, 1000
DEIT_S = 22_050_664  # parameters, with a position for CLS
SHAPES = dict(embed_dims=DIMS, num_heads=6, feedforward_channels=4 * DIMS)


def cost_of(size=224, **backbone):
    """Count a CaiT classifier on the meta device."""
    model = dict(
        type='mmclca.TokenReductionClassifier',
        backbone=dict(type='mmclca.CaiT', img_size=size, **backbone),
        head=dict(type='LinearClsHead', num_classes=CLASSES, in_channels=DIMS),
    )
    with torch.device('meta'):
        return count(MODELS.build(model))


def study(num_layers, **options):
    """DeiT-S without talking heads and LayerScale, as in the table."""
    return cost_of(
        arch=dict(SHAPES, num_layers=num_layers),
        talking_heads=False,
        layer_scale_init_value=0.0,
        **options,
    )


def by_formula(patch, cls):
    """Parameters, matrix-product MACs and norm MACs; CLS has no position."""
    block = 12 * DIMS**2 + 13 * DIMS
    N = 196
    self_attention = 12 * N * DIMS**2 + 2 * N**2 * DIMS
    class_attention = (2 * (N + 1) + 10) * DIMS**2 + 2 * (N + 1) * DIMS
    products = patch * self_attention + cls * class_attention
    products += N * 3 * 16**2 * DIMS + DIMS * CLASSES
    norms = (2 * N * patch + (N + 2) * cls + 1) * DIMS
    return DEIT_S - DIMS + (patch + cls - 12) * block, products, norms


@pytest.mark.parametrize(
    'patch, cls, params, gmacs',
    [
        (9, 3, 22.05, 3.62),
        (10, 2, 22.05, 3.94),
        (11, 1, 22.05, 4.26),
        (12, 1, 23.82, 4.63),
        (12, 2, 25.60, 4.69),
        (12, 3, 27.37, 4.75),
    ],
)
def test_costs_equal_the_table(patch, cls, params, gmacs):
    exact, products, norms = by_formula(patch, cls)
    assert round(exact / 1e6, 2) == params
    assert round(products / 1e9, 2) == gmacs
    cost = study(patch, num_class_layers=cls)
    assert (cost.params, cost.flops) == (exact, products + norms)


@pytest.mark.parametrize('layer', [0, 8])
def test_cls_at_adds_a_token_from_this_layer(layer):
    """Earlier layers have one token less."""
    cost = study(12, cls_at=layer)
    assert cost.params == DEIT_S - DIMS
    tokens = [196 + (i >= layer) for i in range(12)]
    assert cost.attended == cost.tokens == tokens
    layers = sum(12 * N * DIMS**2 + 2 * N**2 * DIMS for N in tokens)
    norms = 2 * DIMS * sum(tokens) + DIMS
    products = 196 * 3 * 16**2 * DIMS + layers + DIMS * CLASSES
    assert cost.flops == products + norms


def test_class_layer_after_cls_at_adds_its_cost():
    cost = study(12, cls_at=11, num_class_layers=1)
    plain = study(12, cls_at=11)
    assert cost.params - plain.params == 12 * DIMS**2 + 13 * DIMS
    products = (2 * 197 + 10) * DIMS**2 + 2 * 197 * DIMS
    norms = 198 * DIMS
    assert cost.flops - plain.flops == products + norms


@pytest.mark.parametrize('size', [224, 384])
def test_parts_equal_closed_forms(size):
    """Talking heads mix the maps twice."""
    cost = cost_of(size, arch=dict(SHAPES, num_layers=2))
    N, L, H = (size // 16) ** 2, 2, 6
    mixes = 2 * N**2 * H**2
    assert cost.parts == dict(
        embedding=N * 3 * 16**2 * DIMS,
        attention=L * (N * DIMS + 4 * N * DIMS**2 + 2 * N**2 * DIMS + mixes),
        FFN=L * (N * DIMS + 8 * N * DIMS**2),
        reduction=0,
        head=2
        * (
            (2 * (N + 1) + 2 + 8) * DIMS**2
            + 2 * (N + 1) * DIMS
            + (N + 2) * DIMS
        )
        + DIMS
        + DIMS * CLASSES,
    )


def test_tome_halves_the_patches():
    """ToMe adds the cost of token similarities."""
    cost = cost_of(
        arch=dict(SHAPES, num_layers=3),
        reducer=dict(type='mmclca.ToMe', keep_rate=0.5),
        reduce_at=(1,),
    )
    assert cost.attended == [196, 196, 98]
    assert cost.tokens == [196, 98, 98]
    assert cost.parts['reduction'] == 98 * 98 * DIMS // 6
