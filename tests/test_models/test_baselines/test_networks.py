# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""TransFG, FFVT and SIM-Trans by their definitions; refused settings."""

from copy import deepcopy

import pytest
import torch
import torch.nn.functional as F
from small_models import arch, images
from torch import nn

from mmclca.errors import Error
from mmclca.models import Variant
from mmclca.models.baselines import FFVT, SIMTrans, TransFG
from mmclca.models.baselines.part_selection import (
    multiply_by_map,
    mutual_attention,
    select_part_tokens,
)
from mmclca.models.baselines.sim_trans import StructureGCN, structure
from mmclca.models.reduction.attention import Attended
from mmclca.registry import MODELS
from mmclca.visualization import class_activation_maps, rollout
from mmclca.visualization.cam import weights_per_layer

SMALL = dict(arch=arch(4), img_size=32, patch_size=8)
NETWORKS = [
    (TransFG, dict(stride=6)),
    (TransFG, dict(keep_maps=False)),
    (FFVT, dict(num_tokens=3)),
    (SIMTrans, dict(stride=6)),
]


def attended(num_layers=3, N=10):
    qkv = torch.randn(num_layers, 3, 2, 2, N, 4, dtype=torch.float64)
    return [Attended(*layer) for layer in qkv]


def test_select_parts_equals_product_of_all_maps():
    layers = attended()
    maps = [layer.weights(layer.q) for layer in layers]
    product = maps[2] @ maps[1] @ maps[0]
    expected = product[:, :, 0, 1:].argmax(dim=-1) + 1
    row = layers[-1].cls_attn().unsqueeze(2)
    assert torch.equal(select_part_tokens(row, maps, torch.matmul), expected)
    parts = select_part_tokens(row, layers, multiply_by_map)
    assert torch.equal(parts, expected)
    whole = multiply_by_map(row, layers[0], chunk_size=3)
    torch.testing.assert_close(whole, row @ maps[0])


def test_mutual_attention_equals_row_times_column():
    (layer,) = attended(1)
    logits = layer.q @ layer.k.mT / 2
    row = logits.softmax(dim=-1)[:, :, 0].mean(dim=1)
    column = logits.softmax(dim=-2)[:, :, :, 0].mean(dim=1)
    torch.testing.assert_close(mutual_attention(layer), row * column)


def test_structure_gcn_equals_convolutions_with_adjacency():
    attn = torch.rand(2, 3, 16, dtype=torch.float64).softmax(dim=-1)
    gcn = StructureGCN(8, drop_rate=0.5).double().eval()
    nodes, weights, anchor = structure(attn, 4)
    adjacency = weights.unsqueeze(2) * weights.unsqueeze(1)
    hidden = F.leaky_relu(adjacency @ (nodes @ gcn.gc1), 0.2).relu()
    out = F.leaky_relu(adjacency @ (hidden @ gcn.gc2), 0.2)
    expected = out[torch.arange(2), anchor].unsqueeze(1)
    torch.testing.assert_close(gcn(attn, 4), expected)
    assert not torch.equal(gcn.train()(attn, 4), gcn(attn, 4))
    for weight in gcn.parameters():  # initial range
        assert 0.9 < weight.abs().max() * weight.size(1) ** 0.5 <= 1


@pytest.mark.parametrize(('kind', 'options'), NETWORKS)
def test_network_outputs_are_independent_of_batch_and_copy(kind, options):
    model, x = kind(**SMALL | options).double().eval(), images().double()
    for param in model.parameters():
        nn.init.normal_(param, std=0.3)
    outs = model(x)
    assert len(outs) == (3 if kind is SIMTrans else 1)
    copies = deepcopy(model)(x)
    for out, copied, alone in zip(outs, copies, model(x[:1]), strict=True):
        assert out.shape == (len(x), model.embed_dims)
        assert torch.equal(out, copied)
        torch.testing.assert_close(out[:1], alone)
    larger = torch.zeros(1, 3, 40, 40, dtype=torch.float64)
    assert model(larger)[-1].isfinite().all()


def test_last_block_has_the_deepest_layer_depth():
    model = TransFG(**SMALL)
    depths = [model.get_layer_depth(name) for name in ('last_layers.0.', 'x')]
    assert depths == [(4, 6), (5, 6)]


def test_frozen_stages_keep_last_block_trainable():
    model = TransFG(**SMALL, frozen_stages=2).train()
    first, second, *others = [*model.layers, *model.last_layers, model.ln1]
    assert not first.training and not second.training
    assert all(p.requires_grad for part in others for p in part.parameters())


def test_drop_rate_does_not_apply_to_attention():
    model = TransFG(**SMALL, drop_rate=0.1)
    blocks = [*model.layers, *model.last_layers]
    assert [block.attn.proj_drop.p for block in blocks] == [0.0] * 4


def contrastive(kind, **options):
    backbone = dict(SMALL, type='mmclca.TransFG')
    return dict(type=f'mmclca.{kind}', backbone=backbone, **options)


def network(kind, **options):
    return dict(SMALL, type=f'mmclca.{kind}', **options)


MIXUP = dict(train_cfg=dict(augments=dict(type='Mixup', alpha=0.8)))


@pytest.mark.parametrize(
    ('config', 'term'),
    [
        (network('TransFG') | dict(arch=arch(1)), 'num_layers=1'),
        (network('SIMTrans') | dict(arch=arch(2)), 'num_layers=2'),
        (network('FFVT', out_type='raw'), 'out_type'),
        (network('TransFG', stride=0), 'stride=0'),
        (network('SIMTrans', stride=(6, '6')), "stride='6'"),
        (network('FFVT', frozen_stages=3), 'frozen_stages=3'),
        (network('FFVT', num_tokens=17), '4 x 4'),
        (network('FFVT', num_tokens=0), 'num_tokens=0'),
        (network('TransFG') | dict(img_size=8), '1 x 1'),
        (network('SIMTrans') | dict(img_size=(32, 24)), '4 x 3'),
        (network('FFVT', last_block='old'), 'last_block'),
        (network('FFVT') | dict(arch=dict(arch(4), num_heads=0)), 'num_heads'),
        (contrastive('ContrastiveClassifier', contrast='triple'), 'contrast'),
        (contrastive('CLEViTClassifier', contrast='triple'), 'contrast'),
        (
            contrastive('ContrastiveClassifier', contrast='transfg', **MIXUP),
            'Mixup',
        ),
        (contrastive('CLEViTClassifier', **MIXUP), 'Mixup'),
    ],
)
def test_settings_are_refused_in_one_line(config, term):
    with pytest.raises(ValueError, match=term) as error:
        MODELS.build(config)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    ('kind', 'shape', 'grid'),
    [(SIMTrans, (32, 24), '4 x 3'), (FFVT, (16, 16), '2 x 2')],
)
def test_forward_refuses_unsupported_grid(kind, shape, grid):
    with pytest.raises(ValueError, match=grid):
        kind(**SMALL)(torch.zeros(1, 3, *shape))


def classifier_of(kind, **options):
    """Classifier config with a baseline, in evaluation mode."""
    head = dict(type='LinearClsHead', num_classes=4, in_channels=24)
    backbone = network(kind, **options) | dict(arch=arch(4, 24))
    return dict(type='ImageClassifier', backbone=backbone, head=head)


def test_trace_has_the_selected_parts():
    model = TransFG(**SMALL).eval()
    with torch.no_grad():
        _, tokens = model.forward_tokens(images())
    (kept,) = tokens.trace
    heads = SMALL['arch']['num_heads']
    assert kept.index.shape == (len(images()), 1 + heads)
    assert not kept.index[:, 0].any() and kept.index[:, 1:].all()
    weights = tokens.patch_weights[:, 1:]
    assert torch.equal(weights.argmax(dim=-1) + 1, kept.index[:, 1:])


def test_trace_has_the_tokens_that_ffvt_selects_in_each_layer():
    model = FFVT(**SMALL, num_tokens=3).eval()
    with torch.no_grad():
        _, tokens = model.forward_tokens(images())
    (kept,) = tokens.trace
    assert kept.index.shape == (len(images()), 1 + 3 * len(model.layers))


@pytest.mark.parametrize('kind', ['TransFG', 'SIMTrans'])
def test_pictures_include_the_last_block(kind):
    model = MODELS.build(classifier_of(kind)).eval()
    assert len(weights_per_layer(model, images())) == 4
    for maps in (
        rollout(model, images()),
        class_activation_maps(model, images()),
    ):
        assert maps.shape == (len(images()), 4, 4) and maps.isfinite().all()
        assert maps.any()


def test_rollout_is_refused_if_the_last_block_joins_layers():
    model = MODELS.build(classifier_of('FFVT', num_tokens=3)).eval()
    with pytest.raises(Error, match='all layers'):
        rollout(model, images())


@pytest.mark.parametrize('kind', ['TransFG', 'FFVT', 'SIMTrans'])
def test_reduction_is_refused_with_the_reason(kind):
    config = classifier_of(kind)
    assert Variant().apply(config) == config
    with pytest.raises(Error, match='selected tokens'):
        Variant('EViT', 0.5).apply(config)
    with pytest.raises(Error, match='normalized'):
        MODELS.build(config['backbone']).check_cla()
