# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of every ViT in two papers.

Touvron's thesis (DeiT, DeiT III) and `Three things everyone should know about
Vision Transformers`, by formula and counted. The tables omit LayerNorm (one
multiply-accumulate per element here), so it is subtracted.
"""

from pathlib import Path

import pytest
import torch
from every_config import piece
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)

from mmclca.evaluation.cost import count
from mmclca.models import with_reduction
from mmclca.registry import MODELS
from mmclca.utils.files import read_rows

DATA = Path(__file__).parents[1] / 'data'
CLASSES = 1000
PLAIN = dict(layer_scale_init_value=0.0, with_cls_pos=True)
THESIS = read_rows(DATA / 'vit_costs.csv')
# config, shapes (depth, branches), their million parameters and GMACs
THREE_THINGS = (
    ('tiny-6x2', ((12, 1), (6, 2)), 5.717, 1.254),
    ('small-18x2', ((12, 1), (6, 2)), 22.05, 4.599),
    ('small-18x2', ((36, 1), (18, 2), (12, 3), (9, 4)), 64.64, 13.68),
    ('small-18x2', ((48, 1), (24, 2)), 85.93, 18.22),
    ('small-18x2', ((60, 1), (30, 2), (20, 3)), 107.22, 22.76),
    ('base-18x2', ((12, 1),), 86.57, 17.564),
    ('base-18x2', ((24, 1), (12, 2)), 171.62, 35.01),
    ('base-18x2', ((36, 1), (18, 2)), 256.68, 52.46),
    ('large-12x2', ((24, 1), (12, 2)), 304.33, 61.555),
)
# 384 px: depth, parameters trained by attention-only tuning, all (millions)
ATTENTION_ONLY = {
    'small-18x2': (12, 7_702_888, 22.20),
    'base-18x2': (12, 29_560_552, 86.86),
    'large-12x2': (24, 102_377_448, 304.72),
}


def model_of(name, **backbone):
    model = with_reduction(piece(f'models/{name}')['model'])
    if 'arch' in backbone:
        backbone['arch'] = dict(model['backbone']['arch'], **backbone['arch'])
    model['backbone'].update(backbone)
    return model


def built(model):
    with torch.device('meta'):
        return MODELS.build(model)


def pairs(backbone):
    """Count pairs of attention and FFN, n in each of D layers."""
    kinds = map(type, backbone.modules())
    return sum(kind is TransformerEncoderLayer for kind in kinds)


def formulas(model):
    """Closed forms for parameters and MACs: thesis, section 3.2.

    With LayerScale and the positions of DeiT III.
    """
    backbone = model.backbone
    L, d, K = pairs(backbone), backbone.embed_dims, CLASSES
    (p, _), (rows, columns) = backbone.stride, backbone.patch_resolution
    N = rows * columns
    prefix = backbone.num_prefix
    T = N + prefix
    heads = 2 if prefix == 2 else 1
    scaled = any('gamma1' in name for name in model.state_dict())
    params = L * (12 * d**2 + 13 * d + 2 * d * scaled) + 2 * d
    params += (3 * p**2 + 1) * d + prefix * d + heads * (d + 1) * K
    params += (N + prefix * backbone.with_cls_pos) * d
    macs = 3 * p**2 * N * d + L * (12 * T * d**2 + 2 * T**2 * d)
    return params, macs + heads * d * K


def norms(model):
    """MACs that the counter adds for norms: T (2 L + 1) d."""
    backbone = model.backbone
    rows, columns = backbone.patch_resolution
    T = rows * columns + backbone.num_prefix
    return T * (2 * pairs(backbone) + 1) * backbone.embed_dims


def rows():
    """Rows of the tables: config, options, parameters and GMACs."""
    for row in THESIS:
        size = dict(img_size=int(row['img_size'])) if row['img_size'] else {}
        costs = int(row['params']), float(row['gmacs'])
        yield pytest.param(row['piece'], size, *costs, id=row['name'])
    for size, shapes, params, gmacs in THREE_THINGS:
        for depth, branches in shapes:
            options = dict(arch=dict(num_layers=depth), branches=branches)
            options.update(PLAIN)
            name = f'{size.split("-")[0]}-{depth}x{branches}'
            file = f'par-vit-{size}-p16'
            yield pytest.param(file, options, params, gmacs, id=name)


QUICK = ('DeiT-Ti', 'DeiT-S distilled', 'DeiT III-M', 'small-6x2')


def marked_rows():
    """Mark all rows as slow, except one per model type."""
    return [
        pytest.param(
            *row.values,
            id=row.id,
            marks=[] if row.id in QUICK else [pytest.mark.slow],
        )
        for row in rows()
    ]


@pytest.mark.parametrize('file, options, params, gmacs', marked_rows())
def test_costs_equal_formula_and_table(file, options, params, gmacs):
    model = built(model_of(file, **options))
    total = sum(parameter.numel() for parameter in model.parameters())
    counted = count(model).flops - norms(model)
    assert (total, counted) == formulas(model)
    # the second paper has two or three decimals, in millions
    assert params in (total, round(total / 1e6, 3), round(total / 1e6, 2))
    assert counted / 1e9 == pytest.approx(gmacs, rel=1e-3)


@pytest.mark.parametrize('size, added', [('small', 27_648), ('base', 55_296)])
def test_layer_scale_adds_two_vectors_per_layer(size, added):
    """Measured on one of 18 layers."""
    file = f'par-vit-{size}-18x2-p16'
    totals = [
        sum(
            parameter.numel()
            for parameter in built(
                model_of(file, depth=1, layer_scale_init_value=value)
            ).parameters()
        )
        for value in (0.0, 1e-4)
    ]
    assert 18 * (totals[1] - totals[0]) == added


@pytest.mark.parametrize('file', ATTENTION_ONLY)
def test_attention_only_tuning_trains_a_third(file):
    """Norms, gammas and the FFN are frozen."""
    depth, trained, total = ATTENTION_ONLY[file]
    model = built(
        model_of(
            f'par-vit-{file}-p16',
            arch=dict(num_layers=depth),
            branches=1,
            img_size=384,
            **PLAIN,
        )
    )
    parts = ('.attn.qkv.', '.attn.proj.', 'head.', 'pos_embed')
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    attention = [s for n, s in sizes.items() if any(p in n for p in parts)]
    assert sum(attention) == trained
    assert round(sum(sizes.values()) / 1e6, 2) == total
