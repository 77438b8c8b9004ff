# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Costs of the baselines: ViT-B/16 and Swin-B, 448 px, 80 classes."""

import pytest
from every_config import piece

from mmclca.evaluation.cost import count_config

DEAD = 10_184_144  # unused parameters in the public SIM-Trans code
# million parameters in the public code, minimum GMACs
MODELS = [
    ('transfg_vit-base-p16', dict(stride=12), 448, 86.76, 139.5),
    ('transfg_vit-base-p16', dict(stride=16), 448, 86.31, 72.2),
    ('ffvt_vit-base-p16', {}, 448, 86.31, 73.0),
    ('ffvt_vit-base-p16', {}, 384, 86.15, 51.9),
    ('sim-trans_vit-base-p16', dict(stride=16), 448, 99.28, 78.5),
    ('sim-trans_vit-base-p16', dict(stride=12), 448, 99.73, 151.8),
    ('cle-vit_swin-base-w7', {}, 448, 86.83, 61.7),
]


def cost(name, size, **options):
    model = piece(f'models/{name}')['model']
    model['backbone'].update(img_size=size, **options)
    model['head']['num_classes'] = 80
    return count_config(model, (size, size))


@pytest.mark.parametrize(
    ('name', 'options', 'size', 'params', 'gmacs'), MODELS
)
@pytest.mark.slow
def test_costs_equal_the_paper(name, options, size, params, gmacs):
    found = cost(name, size, **options)
    dead = DEAD * name.startswith('sim-trans')
    assert round((found.params + dead) / 1e6, 2) == params
    assert round(found.flops / 1e9, 1) == gmacs


C, HEADS = 768, 12
DEPTH = 4  # of the counted networks
ARCH = dict(embed_dims=C, num_layers=DEPTH, num_heads=HEADS)
ARCH.update(feedforward_channels=4 * C)


def layers(number, N):
    """MACs for attention, FFN and two norms in layers with N tokens."""
    return number * (12 * N * C**2 + 2 * N**2 * C + 2 * N * C)


def ends(P):
    """MACs of embedding, final norm for CLS, and linear head."""
    return P * C**2 + C + 80 * C


def transfg(L):
    """MACs of TransFG, which rolls out one row; and of attention maps."""
    N, heads = 37**2 + 1, (L - 2) * HEADS
    network = layers(L - 1, N) + layers(1, 1 + HEADS) + ends(N - 1)
    return network + N * C + heads * N**2, (L - 2) * N**2 * C


def ffvt(L):
    """MACs of FFVT, which reads rows and columns of CLS."""
    N = 28**2 + 1
    chosen, left = (L - 1) * 2 * N * C, 1 + 12 * (L - 1)
    return chosen + layers(L - 1, N) + layers(1, left) + ends(N - 1)


def sim_trans(L):
    """MACs of SIM-Trans, whose structures have rank one."""
    n = 28**2
    hidden = n * 2 + 2 * 512 + 2 * n * 512 + 512 * C
    head = 3 * C * 1024 + 1024 * 80
    network = layers(L, n + 1) + n * C**2 + 3 * C + head
    return network + 3 * ((n + 1) * C + hidden)


@pytest.mark.parametrize(
    'name, options, macs',
    [
        ('transfg', {}, transfg(DEPTH)[0]),
        ('transfg', dict(keep_maps=False), sum(transfg(DEPTH))),
        ('ffvt', {}, ffvt(DEPTH)),
        ('sim-trans', dict(stride=16), sim_trans(DEPTH)),
    ],
)
def test_costs_equal_closed_forms(name, options, macs):
    found = cost(f'{name}_vit-base-p16', 448, arch=ARCH, **options)
    assert found.flops == macs


def test_transfg_formula_with_matrix_products_equals_the_clca_paper():
    """The paper multiplies whole maps, and counts no norms."""
    N = 37**2 + 1
    norms = 11 * 2 * N * C + 2 * (1 + HEADS) * C + C
    rolled = 10 * HEADS * (N**3 - N**2) - N * C
    assert round((transfg(12)[0] - norms + rolled) / 1e9, 2) == 447.84
