# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of networks in two papers: every table row, by closed forms, counted.

Touvron's thesis (2022) has DeiT, DeiT III, CaiT, ResMLP and PatchConvNet;
`Three things everyone should know about Vision Transformers` has parallel
branches. Both omit elementwise operations, for which the counter adds one
multiply-accumulate per element of norms and affine maps.
"""

from math import ceil
from pathlib import Path

import pytest
import torch
from every_config import piece
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from mmpretrain.models.utils import to_2tuple

from mmclca.evaluation.cost import ATEN, MacCounter
from mmclca.models import with_reduction
from mmclca.registry import MODELS
from mmclca.utils.files import read_rows

DATA = Path(__file__).parents[1] / 'data'
K = 1000  # classes
ELEMENTWISE = (ATEN.native_layer_norm, ATEN.addcmul)
PLAIN = dict(layer_scale_init_value=0.0, with_cls_pos=True)
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
QUICK = (
    *('DeiT-Ti', 'DeiT-S distilled', 'DeiT III-M', 'small-6x2'),
    *('cait-b12-p16-224', 'resmlp-s12-p14-224', 'patchconvnet-s20-224'),
)


def built(name, **backbone):
    """Build the model of a base config with other settings, on meta."""
    model = piece(f'models/{name}')['model']
    if 'vit' in name or 'deit' in name:
        model = with_reduction(model)
    if 'arch' in backbone:
        backbone['arch'] = dict(model['backbone']['arch'], **backbone['arch'])
    model['backbone'].update(backbone)
    with torch.device('meta'):
        return MODELS.build(model).eval()


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def size_of(model):
    return to_2tuple(model.backbone.img_size)[0]


def macs(model):
    """Count MACs for one image, without elementwise operations."""
    image = torch.zeros(1, 3, *[size_of(model)] * 2, device='meta')
    with torch.no_grad(), MacCounter() as counter:
        model(image)
    counts = counter.get_flop_counts()['Global']
    return sum(n for op, n in counts.items() if op not in ELEMENTWISE) // 2


def vit_forms(model):
    """Thesis, section 3.2; with LayerScale and the positions of DeiT III."""
    backbone, d = model.backbone, model.backbone.embed_dims
    # an n-branch layer has n pairs of attention and FFN
    kinds = map(type, backbone.modules())
    L = sum(kind is TransformerEncoderLayer for kind in kinds)
    p, prefix = backbone.stride[0], backbone.num_prefix
    N = (size_of(model) // p) ** 2
    T, heads = N + prefix, max(prefix, 1)
    scaled = any('gamma1' in name for name in model.state_dict())
    params = L * (12 * d**2 + 13 * d + 2 * d * scaled) + 2 * d
    params += (3 * p**2 + 1) * d + prefix * d + heads * (d + 1) * K
    params += (N + prefix * backbone.with_cls_pos) * d
    layers = L * (12 * T * d**2 + 2 * T**2 * d)
    return params, 3 * p**2 * N * d + layers + heads * d * K


def cait_forms(model):
    """Thesis, 3.6: layers, two class layers, embedding, positions, head."""
    backbone, p = model.backbone, 16
    L, d = len(backbone.layers), backbone.embed_dims
    h = backbone.layers[0].attn.num_heads
    N = (size_of(model) // p) ** 2
    layer, ends = 12 * d**2 + 15 * d, (3 * p**2 + 1) * d + N * d + d + 2 * d
    params = L * (layer + 2 * h**2 + 2 * h) + 2 * layer + ends + (d + 1) * K
    mixed = L * (12 * N * d**2 + 2 * N**2 * d + 2 * N**2 * h**2)
    read = 2 * (N + 1) * d**2 + 2 * d**2 + 2 * (N + 1) * d + 8 * d**2
    return params, N * 3 * p**2 * d + mixed + 2 * read + d * K


def resmlp_forms(model):
    """Thesis, chapter 4: layers, embedding, last affine map, head."""
    backbone = model.backbone
    L, d = len(backbone.layers), backbone.embed_dims
    p = backbone.patch_embed.projection.stride[0]
    N = (size_of(model) // p) ** 2
    layers = L * (8 * d**2 + 11 * d + N**2 + N)
    params = layers + (3 * p**2 + 1) * d + 2 * d + (d + 1) * K
    return params, N * 3 * p**2 * d + L * (N**2 * d + 8 * N * d**2) + d * K


def patch_convnet_forms(model):
    """Thesis, chapter 5: stem, column, pooling by queries, head."""
    backbone, size = model.backbone, size_of(model)
    L, d = len(backbone.layers), backbone.embed_dims
    N, queries = ceil(size / 16) ** 2, backbone.pool.cls_token.size(1)
    keys = N + (queries == 1)  # CLS is a key only if there is one query
    params = L * (2.5 * d**2 + 16.25 * d) + 3.375 * d + 5.90625 * d**2
    params += 10 * d**2 + 14 * d + queries * d + 2 * d + (d + 1) * K
    stem = size**2 * (27 * d / 32 + 27 * d**2 / 512)
    column = L * (N * (2 * d**2 + 9 * d) + d**2 / 2)
    pooling = 2 * keys * d**2 + queries * (2 * d**2 + 2 * keys * d + 6 * d**2)
    head = d * K * (queries == 1)  # else elementwise products
    return params, stem + column + pooling + head


FORMS = dict(
    cait=cait_forms, resmlp=resmlp_forms, patchconvnet=patch_convnet_forms
)


def rows():
    """Rows of the tables: id, config, options, parameters and GMACs."""
    for row in read_rows(DATA / 'vit_costs.csv'):
        size = dict(img_size=int(row['img_size'])) if row['img_size'] else {}
        costs = int(row['params']), float(row['gmacs'])
        yield row['name'], row['piece'], size, *costs
    for row in read_rows(DATA / 'whole_network_costs.csv'):
        size = dict(img_size=int(row['size']))
        costs = int(row['params']), float(row['gmacs'])
        yield f'{row["piece"]}-{row["size"]}', row['piece'], size, *costs
    for size, shapes, *costs in THREE_THINGS:
        for depth, branches in shapes:
            options = dict(arch=dict(num_layers=depth), branches=branches)
            options.update(PLAIN)
            name = f'{size.split("-")[0]}-{depth}x{branches}'
            yield name, f'par-vit-{size}-p16', options, *costs


def marked_rows():
    """Mark all rows as slow, except one per model type."""
    for name, *values in rows():
        marks = [] if name in QUICK else [pytest.mark.slow]
        yield pytest.param(*values, id=name, marks=marks)


@pytest.mark.parametrize('file, options, params, gmacs', [*marked_rows()])
def test_costs_equal_formula_and_table(file, options, params, gmacs):
    model = built(file, **options)
    total, by_count = parameters(model), macs(model)
    formula = FORMS.get(file.split('-')[0], vit_forms)
    assert (total, by_count) == formula(model)
    # the second paper has two or three decimals, in millions
    assert params in (total, round(total / 1e6, 3), round(total / 1e6, 2))
    assert by_count / 1e9 == pytest.approx(gmacs, rel=1e-3)


def test_class_mlp_adds_two_layers():
    """Each sums the patches with N + 1 weights and a bias."""
    model = built('resmlp-s12-p16', img_size=224, pooling='class_mlp')
    N, d = 196, 384
    params, by_formula = resmlp_forms(model)
    params += 2 * (N + 2 + 11 * d + 8 * d**2)
    assert parameters(model) == params == 17_719_012
    assert macs(model) == by_formula + 2 * ((N + 1) * d + 8 * d**2)
    assert macs(model) / 1e9 == pytest.approx(3.013, rel=1e-3)


@pytest.mark.parametrize(
    'name, depth, trained, total',
    [  # depth, parameters trained by attention-only tuning, all (millions)
        ('small-18x2', 12, 7_702_888, 22.20),
        ('base-18x2', 12, 29_560_552, 86.86),
        ('large-12x2', 24, 102_377_448, 304.72),
    ],
)
def test_attention_only_tuning_trains_a_third(name, depth, trained, total):
    """At 384 px. Norms, gammas and the FFN are frozen."""
    options = dict(arch=dict(num_layers=depth), branches=1, img_size=384)
    model = built(f'par-vit-{name}-p16', **options, **PLAIN)
    parts = ('.attn.qkv.', '.attn.proj.', 'head.', 'pos_embed')
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    attention = [s for n, s in sizes.items() if any(p in n for p in parts)]
    assert sum(attention) == trained
    assert round(sum(sizes.values()) / 1e6, 2) == total
