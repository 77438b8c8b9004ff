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


def layer(N):
    """MACs for attention, FFN and two norms with N tokens."""
    return 12 * N * C**2 + 2 * N**2 * C + 2 * N * C


def ends(P):
    """MACs of embedding, final norm of CLS, and linear head."""
    return P * C**2 + C + 80 * C


def test_transfg_rolls_out_one_row():
    N = 37**2 + 1
    network = 11 * layer(N) + layer(1 + HEADS) + ends(N - 1)
    row = N * C + 10 * HEADS * N**2
    again = 10 * N**2 * C  # maps computed twice if they are not kept
    fused = cost('transfg_vit-base-p16', 448, keep_maps=False)
    assert cost('transfg_vit-base-p16', 448).flops == network + row
    assert fused.flops == network + row + again
    # the CLCA paper counts matrix products, but no norms
    norms = 11 * 2 * N * C + 2 * (1 + HEADS) * C + C
    matrices = 10 * HEADS * N**3
    assert round((network - norms + matrices) / 1e9, 2) == 447.84


def test_ffvt_reads_rows_and_columns_of_cls():
    N = 28**2 + 1
    chosen = 11 * 2 * N * C
    network = 11 * layer(N) + layer(1 + 11 * 12) + ends(N - 1)
    assert cost('ffvt_vit-base-p16', 448).flops == network + chosen


def test_sim_trans_structures_have_rank_one():
    n = 28**2
    hidden = n * 2 + 2 * 512 + 2 * n * 512 + 512 * C
    head = 3 * C * 1024 + 1024 * 80
    network = 12 * layer(n + 1) + n * C**2 + 3 * C + head
    found = cost('sim-trans_vit-base-p16', 448, stride=16)
    assert found.flops == network + 3 * ((n + 1) * C + hidden)
