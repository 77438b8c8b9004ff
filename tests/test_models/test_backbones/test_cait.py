# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CaiT: merged patches, reducers, class attention."""

import pytest
import torch
from small_models import arch, build, images

from mmclca.models.variants import with_reduction
from mmclca.registry import MODELS

REDUCE = dict(reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(1,))


def cait(num_layers=2, **options):
    """Backbone config with 4 x 4 patches."""
    options = dict(dict(img_size=32, patch_size=8), **options)
    return dict(type='mmclca.CaiT', arch=arch(num_layers), **options)


@torch.no_grad()
@pytest.mark.parametrize('options', [{}, dict(talking_heads=False)], ids=str)
def test_merging_equal_patches_keeps_output(options):
    x = images(2).double()
    x = x[..., :8].repeat(1, 1, 1, 4)  # equal patches in each row
    outs = []
    for reduction in ({}, REDUCE):
        torch.manual_seed(0)
        model = build(cait(3, **options, **reduction)).double().eval()
        model.pos_embed.zero_()
        (out,), tokens = model.forward_tokens(x)
        outs.append(out)
    assert tokens.features.size(1) == 8
    torch.testing.assert_close(*outs, rtol=0, atol=1e-12)


def reduced(name, **options):
    reducer = dict(type=f'mmclca.{name}', keep_rate=0.5, **options)
    cache = dict(type='mmclca.CrossLayerCache', num_tokens=0)
    return cait(3, reducer=reducer, reduce_at=(1,), cache=cache)


@pytest.mark.parametrize(
    'name, options',
    [
        ('ToMe', {}),
        ('Sinkhorn', {}),
        ('KMedoids', dict(attention_of_all=True)),
    ],
)
def test_cait_supports_reducers_without_cls_attention(name, options):
    model, x = build(reduced(name, **options)), images(3)
    model.train().forward_tokens(x)[0][0].sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    with torch.no_grad():
        (together,), tokens = model.eval().forward_tokens(x)
        alone = torch.cat([model(one)[0] for one in x.split(1)])
    assert tokens.features.size(1) < 16 + 2
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    kept = tokens.patch_weights.sum(dim=-1)
    assert kept.shape == tokens.features.shape[:2] and kept.any()


def test_cait_refuses_reducers_with_cls_attention_and_cla_head():
    for name, term in (('EViT', 'CLS token'), ('DynamicViT', 'masks')):
        with pytest.raises(ValueError, match=f'^{name} .*{term}'):
            MODELS.build(reduced(name))
    head = dict(type='LinearClsHead', num_classes=5, in_channels=16)
    model = dict(type='ImageClassifier', backbone=cait(), head=head)
    with pytest.raises(ValueError, match='CLAHead'):
        with_reduction(model, 'ToMe', 0.5, reduce_at=(1,), cla=True)


@pytest.mark.parametrize(
    'options, shape',
    [(dict(REDUCE, num_class_layers=3), (3, 1 + 8)), ({}, (2, 1 + 16))],
)
def test_class_attention_covers_cls_and_remaining_tokens(options, shape):
    maps = torch.stack(build(cait(**options)).class_attention(images()))
    assert maps.shape == (shape[0], 2, 2, 1, shape[1])
    torch.testing.assert_close(maps.sum(-1), torch.ones(maps.shape[:-1]))
