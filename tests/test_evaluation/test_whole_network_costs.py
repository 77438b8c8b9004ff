# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of CaiT, ResMLP and PatchConvNet in Touvron's thesis (2022).

Every table row, by closed forms and counted. The thesis omits elementwise
operations; the counter adds one multiply-accumulate per element for norms and
affine maps.
"""

from math import ceil
from pathlib import Path

import pytest
import torch
from every_config import piece

from mmclca.evaluation.cost import ATEN, MacCounter
from mmclca.registry import MODELS
from mmclca.utils.files import read_rows

DATA = Path(__file__).parents[1] / 'data'
CLASSES = 1000
ELEMENTWISE = (ATEN.native_layer_norm, ATEN.addcmul)
QUICK = (
    ('cait-b12-p16', 224),
    ('resmlp-s12-p14', 224),
    ('patchconvnet-s20', 224),
)


def built(name, size, **options):
    """Build the model of a base config for an image size, on meta."""
    model = piece(f'models/{name}')['model']
    model['backbone'].update(img_size=size, **options)
    with torch.device('meta'):
        return MODELS.build(model).eval()


def parameters(model):
    return sum(parameter.numel() for parameter in model.parameters())


def macs(model, size):
    """Count MACs for one image, without elementwise operations."""
    image = torch.zeros(1, 3, size, size, device='meta')
    with torch.no_grad(), MacCounter() as counter:
        model(image)
    counts = counter.get_flop_counts()['Global']
    return sum(n for op, n in counts.items() if op not in ELEMENTWISE) // 2


def cait_forms(model, size):
    """Thesis, 3.6: layers, two class layers, embedding, positions, head."""
    backbone, K = model.backbone, CLASSES
    L, d = len(backbone.layers), backbone.embed_dims
    h = backbone.layers[0].attn.num_heads
    N, p = (size // 16) ** 2, 16
    layer, ends = 12 * d**2 + 15 * d, (3 * p**2 + 1) * d + N * d + d + 2 * d
    params = L * (layer + 2 * h**2 + 2 * h) + 2 * layer + ends + (d + 1) * K
    mixed = L * (12 * N * d**2 + 2 * N**2 * d + 2 * N**2 * h**2)
    read = 2 * (N + 1) * d**2 + 2 * d**2 + 2 * (N + 1) * d + 8 * d**2
    return params, N * 3 * p**2 * d + mixed + 2 * read + d * K


def resmlp_forms(model, size):
    """Thesis, chapter 4: layers, embedding, last affine map, head."""
    backbone, K = model.backbone, CLASSES
    L, d = len(backbone.layers), backbone.embed_dims
    p = backbone.patch_embed.projection.stride[0]
    N = (size // p) ** 2
    layers = L * (8 * d**2 + 11 * d + N**2 + N)
    params = layers + (3 * p**2 + 1) * d + 2 * d + (d + 1) * K
    return params, N * 3 * p**2 * d + L * (N**2 * d + 8 * N * d**2) + d * K


def patch_convnet_forms(model, size):
    """Thesis, chapter 5: stem, column, pooling by queries, head."""
    backbone, K = model.backbone, CLASSES
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


FORMS = {
    'cait': cait_forms,
    'resmlp': resmlp_forms,
    'patchconvnet': patch_convnet_forms,
}


def rows():
    """Rows of the table: config, size, parameters, GMACs; mostly slow."""
    for row in read_rows(DATA / 'whole_network_costs.csv'):
        name, size = row['piece'], int(row['size'])
        marks = [pytest.mark.slow] * ((name, size) not in QUICK)
        costs = int(row['params']), float(row['gmacs'])
        yield pytest.param(
            name, size, *costs, id=f'{name}-{size}', marks=marks
        )


@pytest.mark.parametrize('name, size, params, gmacs', [*rows()])
def test_costs_equal_formula_and_table(name, size, params, gmacs):
    model = built(name, size)
    by_formula = FORMS[name.split('-')[0]](model, size)
    assert (parameters(model), macs(model, size)) == by_formula
    assert params == by_formula[0]
    assert by_formula[1] / 1e9 == pytest.approx(gmacs, rel=1e-3)


def test_class_mlp_adds_two_layers():
    """Each sums the patches with N + 1 weights and a bias."""
    model = built('resmlp-s12-p16', 224, ending='class_mlp')
    N, d = 196, 384
    params, by_formula = resmlp_forms(model, 224)
    params += 2 * (N + 2 + 11 * d + 8 * d**2)
    assert parameters(model) == params == 17_719_012
    counted = macs(model, 224)
    assert counted == by_formula + 2 * ((N + 1) * d + 8 * d**2)
    assert counted / 1e9 == pytest.approx(3.013, rel=1e-3)
