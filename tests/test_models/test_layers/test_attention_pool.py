# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Attention pooling by definition, and as a ResNet's neck."""

import pytest
import torch
from small_models import build, images

from mmclca.checkpoints.loading import load_trained
from mmclca.registry import MODELS

POOL = dict(type='mmclca.AttentionPool', in_channels=8)
MAPS = (torch.randn(2, 8, 3, 4), torch.randn(2, 8, 2, 2))


def by_hand(pool, x):
    """Weights and output per query, for one image and one head."""
    layer, places = pool.layer, x.flatten(1).T
    rows = []
    for query in pool.cls_token[0]:
        own = layer.ln1(query)
        keys = [layer.ln1(place) for place in places]
        keys = keys if pool.multiclass else [own, *keys]
        q = layer.attn.q(own)
        logits = torch.stack([q @ layer.attn.k(key) for key in keys])
        shares = (logits / len(q) ** 0.5).softmax(dim=0)
        values = torch.stack([layer.attn.v(key) for key in keys])
        read = (shares[:, None] * values).sum(dim=0)
        y = query + layer.gamma1(layer.attn.proj(read))
        rows.append((shares, pool.ln(layer.ffn(layer.ln2(y), identity=y))))
    return rows


@pytest.mark.parametrize('multiclass', [False, 1, 3])
def test_pool_equals_definition(multiclass):
    pool = build(dict(POOL, multiclass=multiclass))
    outs = pool(MAPS)
    for x, out in zip(MAPS, outs, strict=True):
        expected = torch.stack([y for _, y in by_hand(pool, x[1])])
        expected = expected if multiclass else expected[0]
        assert out.shape == (2, *expected.shape)
        torch.testing.assert_close(out[1], expected, rtol=1e-5, atol=1e-6)
    (attention,) = pool.class_attention(MAPS)
    expected = torch.stack([shares for shares, _ in by_hand(pool, MAPS[1][0])])
    torch.testing.assert_close(attention[0, 0], expected)


def test_resnet_with_one_query_loads_into_one_per_class(tmp_path):
    cfg = dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet', depth=18, base_channels=8),
        neck=dict(type='mmclca.AttentionPool', in_channels=64),
        head=dict(type='LinearClsHead', num_classes=3, in_channels=64),
    )
    model = build(cfg)
    assert model(images(2, 64, 96)).shape == (2, 3)
    torch.save(model.state_dict(), tmp_path / 'one.pth')
    cfg['neck']['multiclass'] = 3
    cfg['head']['type'] = 'mmclca.PerClassHead'
    each = MODELS.build(cfg)
    load_trained(each, str(tmp_path / 'one.pth'))
    query = model.neck.cls_token
    assert torch.equal(each.neck.cls_token, query.expand(1, 3, -1))
    assert torch.equal(each.head.weight, model.head.fc.weight)
    assert torch.equal(each.head.bias, model.head.fc.bias)
    assert each.eval()(images(2, 64)).shape == (2, 3)
