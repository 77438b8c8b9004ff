# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CaiT: what it computes, what it reduces, and what it refuses."""

import pytest
import torch
from mmcv.cnn.bricks import DropPath
from small_models import REDUCERS, arch, build, images
from torch import nn

from mmclca.models.variants import with_reduction
from mmclca.registry import MODELS

REDUCE = dict(reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(1,))


def cait(num_layers=2, **options):
    """Config of a backbone of 4 x 4 patches."""
    options = dict(dict(img_size=32, patch_size=8), **options)
    return dict(type='mmclca.CaiT', arch=arch(num_layers), **options)


def double(**options):
    return build(cait(**options)).double().eval()


def reducer(name):
    """Its config; K-medoids asks all tokens."""
    asks = dict(attention_of_all=True) if name == 'KMedoids' else {}
    return dict(type=f'mmclca.{name}', keep_rate=0.5, **asks)


@torch.no_grad()
@pytest.mark.parametrize('options', [{}, dict(talking_heads=False)], ids=str)
def test_patches_that_merged_count_as_those_that_they_are(options):
    """Pairs of equal ones, in talking heads and for CLS: sizes are keys'."""
    x = images(2).double()
    x = x[..., :8].repeat(1, 1, 1, 4)  # the patches of a row are equal
    made = []
    for reduction in ({}, REDUCE):
        torch.manual_seed(0)
        model = double(num_layers=3, **options, **reduction)
        model.pos_embed.zero_()
        (out,), tokens = model.forward_tokens(x)
        made.append(out)
    assert tokens.x.size(1) == 8
    torch.testing.assert_close(*made, rtol=0, atol=1e-12)


@pytest.mark.parametrize('name', REDUCERS)
def test_reducers_that_ask_no_cls_reduce_and_others_are_refused(name):
    """Of DynamicViT what is masked in training would be read again."""
    config = cait(
        num_layers=3,
        reducer=reducer(name),
        reduce_at=(1,),
        cache=dict(type='mmclca.CrossLayerCache', num_tokens=0),
    )
    ask_cls = ('ATS', 'DiffRate', 'EViT', 'PPT', 'TopK')
    refused = dict.fromkeys(ask_cls, 'needs a CLS token: CaiT')
    refused['DynamicViT'] = 'masks tokens'
    if name in refused:
        with pytest.raises(ValueError, match=f'^{name} {refused[name]}'):
            MODELS.build(config)
        return
    model, x = build(config), images(3)
    assert model.reduces == (name != 'TokenReducer')
    model.train().forward_tokens(x)[0][0].sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    with torch.no_grad():
        (together,), tokens = model.eval().forward_tokens(x)
        alone = torch.cat([model(one)[0] for one in x.split(1)])
    assert tokens.x.size(1) < 16 + 2 or name == 'TokenReducer'
    torch.testing.assert_close(together, alone, rtol=1e-3, atol=1e-4)
    kept = tokens.patch_weights.sum(dim=-1)
    assert kept.shape == tokens.x.shape[:2] and kept.any()


def test_a_head_that_reads_several_layers_is_refused():
    head = dict(type='LinearClsHead', num_classes=5, in_channels=16)
    model = dict(type='ImageClassifier', backbone=cait(), head=head)
    with pytest.raises(ValueError, match='CLAHead .* use LinearClsHead'):
        with_reduction(model, 'ToMe', 0.5, reduce_at=(1,), cla=True)


def test_what_cls_reads():
    """Without a reduction of all patches, else of the tokens left."""
    model = build(cait(**REDUCE, num_class_layers=3))
    for maps, num_keys in (
        (model.class_attention(images()), 1 + 8),
        (build(cait()).class_attention(images()), 1 + 16),
    ):
        for weights in maps:
            assert weights.shape == (2, 2, 1, num_keys)
            torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 1))
    assert len(maps) == 2


def test_initial_weights():
    """Drawn last: mmpretrain's layers would draw their FFN after."""
    model = MODELS.build(dict(cait(), arch=arch(2, 64)))
    model.init_weights()
    for name, part in model.named_modules():
        if isinstance(part, nn.Linear):
            draws = part.weight.numel()
            rel = 0.1 if draws > 4000 else 0.9  # 2 x 2 of talking heads
            std = part.weight.square().mean().sqrt().item()
            assert std == pytest.approx(0.02, rel=rel), name
            assert not part.bias.any(), name
    for token in (model.cls_token, model.pos_embed):
        assert token.std().item() == pytest.approx(0.02, rel=0.3)
    assert (model.ln1.weight == 1).all()


def test_stochastic_depth_is_uniform_and_not_in_class_layers():
    model = MODELS.build(cait(num_layers=3, drop_path_rate=0.2))
    paths = {
        name: path.drop_prob
        for name, path in model.named_modules()
        if isinstance(path, DropPath)
    }
    assert set(paths.values()) == {0.2} and len(paths) == 6
    assert all(name.startswith('layers.') for name in paths)
