# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of CaiT, by formula and in Touvron's thesis (2022).

The counter adds LayerNorm, one multiply-accumulate per element.
"""

import pytest
import torch

from mmclca.evaluation.cost import count
from mmclca.registry import MODELS

DIMS, CLASSES, EMBEDDING = 384, 1000, 196 * 3 * 16**2 * 384
DEIT_S = 22_050_664  # parameters, with a position for CLS
SHAPES = dict(embed_dims=DIMS, num_heads=6, feedforward_channels=4 * DIMS)


def cost_of(num_layers, size=224, **backbone):
    """Count a CaiT classifier on the meta device."""
    arch = dict(SHAPES, num_layers=num_layers)
    backbone.update(type='mmclca.CaiT', img_size=size, arch=arch)
    model = dict(
        type='mmclca.TokenReductionClassifier',
        backbone=backbone,
        head=dict(type='LinearClsHead', num_classes=CLASSES, in_channels=DIMS),
    )
    with torch.device('meta'):
        return count(MODELS.build(model))


def study(num_layers, **options):
    """DeiT-S without talking heads and LayerScale, as in the table."""
    plain = dict(talking_heads=False, layer_scale_init_value=0.0)
    return cost_of(num_layers, **plain, **options)


def by_formula(tokens, cls, patches=196):
    """Parameters, matrix-product MACs and norm MACs; CLS has no position.

    ``tokens`` are those in each patch layer, and ``patches`` those that each
    of ``cls`` class layers reads.
    """
    read, block = patches + 1, 12 * DIMS**2 + 13 * DIMS
    products = sum(12 * N * DIMS**2 + 2 * N**2 * DIMS for N in tokens)
    products += cls * ((2 * read + 10) * DIMS**2 + 2 * read * DIMS)
    products += EMBEDDING + DIMS * CLASSES
    norms = (2 * sum(tokens) + (read + 1) * cls + 1) * DIMS
    params = DEIT_S - DIMS + (len(tokens) + cls - 12) * block
    return params, products, norms


TABLE = [
    (9, 3, 22.05, 3.62),
    (10, 2, 22.05, 3.94),
    (11, 1, 22.05, 4.26),
    (12, 1, 23.82, 4.63),
    (12, 2, 25.60, 4.69),
    (12, 3, 27.37, 4.75),
]


def test_formula_equals_the_table():
    for patch, cls, params, gmacs in TABLE:
        exact, products, _ = by_formula([196] * patch, cls)
        found = round(exact / 1e6, 2), round(products / 1e9, 2)
        assert found == (params, gmacs)


@pytest.mark.parametrize(
    'tokens, options',
    [
        ([196] * 2, dict(num_class_layers=3)),
        ([197] * 3, dict(cls_at=0)),
        ([196] * 2 + [197] * 2, dict(cls_at=2)),
        ([196] * 2 + [197], dict(cls_at=2, num_class_layers=1)),
    ],
)
def test_costs_equal_the_formula(tokens, options):
    """``cls_at`` adds a token from this layer."""
    cost = study(len(tokens), **options)
    default = 0 if 'cls_at' in options else 2
    cls = options.get('num_class_layers', default)
    params, products, norms = by_formula(tokens, cls)
    assert (cost.params, cost.flops) == (params, products + norms)
    assert cost.attended == cost.tokens == tokens


@pytest.mark.parametrize('size', [224, 384])
def test_parts_equal_closed_forms(size):
    """Talking heads mix the maps twice."""
    N, L, H = (size // 16) ** 2, 2, 6
    mixes = 2 * N**2 * H**2
    assert cost_of(L, size).parts == dict(
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
    tome = dict(type='mmclca.ToMe', keep_rate=0.5)
    cost = cost_of(3, reducer=tome, reduce_at=(1,))
    assert cost.attended == [196, 196, 98]
    assert cost.tokens == [196, 98, 98]
    assert cost.parts['reduction'] == 98 * 98 * DIMS // 6
