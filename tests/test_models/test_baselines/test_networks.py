# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""TransFG, FFVT and SIM-Trans by their definitions; what is refused."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from small_models import arch, images
from torch import nn

from mmclca.models import FFVT, SIMTrans, TransFG
from mmclca.models.baselines.part_selection import (
    multiply_by_attention,
    mutual_attention,
    select_parts,
)
from mmclca.models.baselines.sim_trans import StructureGCN, structure
from mmclca.models.reduction.attention import Attended

SMALL = dict(arch=arch(4), img_size=32, patch_size=8)
NETWORKS = [
    (TransFG, dict(stride=6)),
    (TransFG, dict(keep_maps=False)),
    (FFVT, dict(num_tokens=3)),
    (SIMTrans, dict(stride=6)),
]
each_network = pytest.mark.parametrize(('kind', 'options'), NETWORKS)


def drawn(kind, **options):
    """A small one in float64 whose parameters are far from their start."""
    model = kind(**SMALL | options).double().eval()
    for param in model.parameters():
        nn.init.normal_(param, std=0.3)
    return model


def attended(num_layers=3, N=10):
    shape = (num_layers, 3, 2, 2, N, 4)
    drawn = torch.randn(shape, dtype=torch.float64)
    return [Attended(*qkv) for qkv in drawn]


def test_a_row_of_the_rollout_is_that_of_the_product():
    seen = attended()
    maps = [one.weights(one.q) for one in seen]
    product = maps[2] @ maps[1] @ maps[0]
    expected = product[:, :, 0, 1:].argmax(dim=-1) + 1
    row = seen[-1].cls_attn().unsqueeze(2)
    assert torch.equal(select_parts(row, maps, torch.matmul), expected)
    assert torch.equal(
        select_parts(row, seen, multiply_by_attention), expected
    )
    whole = multiply_by_attention(row, seen[0], chunk_size=3)
    torch.testing.assert_close(whole, row @ maps[0])


def test_mutual_attention_is_a_row_times_a_column():
    (seen,) = attended(1)
    logits = seen.q @ seen.k.mT / 2
    row = logits.softmax(dim=-1)[:, :, 0].mean(dim=1)
    column = logits.softmax(dim=-2)[:, :, :, 0].mean(dim=1)
    torch.testing.assert_close(mutual_attention(seen), row * column)


def test_rank_one_convolutions_are_those_of_the_adjacency():
    attn = torch.rand(2, 3, 16, dtype=torch.float64).softmax(dim=-1)
    gcn = StructureGCN(8, drop_rate=0.5).double().eval()
    nodes, weights, anchor = structure(attn, 4)
    adjacency = weights.unsqueeze(2) * weights.unsqueeze(1)
    hidden = F.leaky_relu(adjacency @ (nodes @ gcn.gc1), 0.2).relu()
    made = F.leaky_relu(adjacency @ (hidden @ gcn.gc2), 0.2)
    expected = made[torch.arange(2), anchor].unsqueeze(1)
    torch.testing.assert_close(gcn(attn, 4), expected)
    assert not torch.equal(gcn.train()(attn, 4), gcn(attn, 4))
    for weight in gcn.parameters():  # as they start
        assert 0.9 < weight.abs().max() * weight.size(1) ** 0.5 <= 1


@each_network
def test_answers_do_not_depend_on_the_batch_and_the_copy(kind, options):
    model, x = drawn(kind, **options), images().double()
    found = model(x)
    assert len(found) == (3 if kind is SIMTrans else 1)
    again = deepcopy(model)(x)
    for feat, copied, alone in zip(found, again, model(x[:1]), strict=True):
        assert feat.shape == (len(x), model.embed_dims)
        assert torch.equal(feat, copied)
        torch.testing.assert_close(feat[:1], alone)
    larger = torch.zeros(1, 3, 40, 40, dtype=torch.float64)
    assert model(larger)[-1].isfinite().all()


def test_the_last_block_is_the_deepest_layer():
    model = TransFG(**SMALL)
    depths = [model.get_layer_depth(name) for name in ('last_layers.0.', 'x')]
    assert depths == [(4, 6), (5, 6)]


def test_frozen_layers_come_before_the_last_block():
    model = TransFG(**SMALL, frozen_stages=2).train()
    first, second, *others = [*model.layers, *model.last_layers, model.ln1]
    assert not first.training and not second.training
    assert all(p.requires_grad for part in others for p in part.parameters())


def test_dropout_is_not_in_attention():
    model = TransFG(**SMALL, drop_rate=0.1)
    blocks = [*model.layers, *model.last_layers]
    assert [block.attn.proj_drop.p for block in blocks] == [0.0] * 4


@pytest.mark.parametrize(
    ('kind', 'options', 'message'),
    [
        (TransFG, dict(arch=arch(1)), 'num_layers=1 must be an integer, 2 or'),
        (SIMTrans, dict(arch=arch(2)), 'num_layers=2 must be an integer, 3'),
        (FFVT, dict(arch=dict(arch(4), num_heads=0)), 'num_heads=0 must be'),
        (TransFG, dict(stride=0), 'stride=0 must be an integer, 1 or more'),
        (SIMTrans, dict(stride=(6, '6')), "stride='6' must be an integer"),
        (
            FFVT,
            dict(out_type='raw'),
            "option: no 'out_type'; choose from in_ch",
        ),
        (FFVT, dict(frozen_stages=3), 'frozen_stages=3 must .* -1 to 2'),
        (FFVT, dict(num_tokens=17), 'FFVT .* 17 parts .* 4 x 4 patches'),
        (FFVT, dict(num_tokens=0), 'num_tokens=0 must be an integer, 1 or'),
        (TransFG, dict(img_size=8), 'TransFG .* 2 parts .* 1 x 1 patch'),
        (SIMTrans, dict(img_size=(32, 24)), 'square .* 4 x 3'),
        (FFVT, dict(last_block='old'), "last_block: no 'old'"),
        (FFVT, dict(arch='deit-tny'), "arch: no 'deit-tny'"),
    ],
)
def test_settings_that_are_refused(kind, options, message):
    with pytest.raises(ValueError, match=message) as error:
        kind(**SMALL | options)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('kind', 'shape', 'message'),
    [
        (SIMTrans, (32, 24), 'square .* 4 x 3'),
        (FFVT, (16, 16), 'FFVT .* 12 parts .* 2 x 2 patches'),
    ],
)
def test_images_that_are_refused(kind, shape, message):
    with pytest.raises(ValueError, match=message):
        kind(**SMALL)(torch.zeros(1, 3, *shape))
