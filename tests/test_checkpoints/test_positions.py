# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Adapt positions and CLR tokens to a model."""

import pytest
import torch
from foreign_models import (
    CACHE,
    HEAD,
    backbone_config,
    images,
    ours,
    release,
    theirs,
)
from timm.layers import resample_abs_pos_embed
from timm.models.vision_transformer import checkpoint_filter_fn

from mmclca.checkpoints.error import CheckpointError
from mmclca.registry import MODELS

NO_CLS = dict(
    with_cls_token=False,
    out_type='avg_featmap',
    head=dict(type='LinearClsHead', num_classes=5, in_channels=16),
)


@pytest.fixture
def load(load):
    """Function to load weights into a model, which returns the backbone."""
    return lambda weights, model: load(weights, model).backbone


@pytest.mark.parametrize('style', ['plain', 'deit3'])
@pytest.mark.parametrize('size', [(24, 24), (40, 64), (16, 64)])
def test_resized_positions_equal_timm(load, style, size):
    weights = theirs(style).state_dict()
    there = theirs(style, img_size=size)
    there.load_state_dict(checkpoint_filter_fn(dict(weights), there))
    here = ours(style, img_size=size)
    load(weights, here)
    x = images(*size)
    with torch.no_grad():
        assert (here(x) - there(x)).abs().max() < 1e-9


def test_positions_are_resized_in_float32_with_antialias(load):
    pos = torch.randn(1, 17, 16, dtype=torch.float64)
    weights = dict(theirs().state_dict(), pos_embed=pos)
    backbone = load(weights, ours(img_size=(24, 48)))
    same_here = resample_abs_pos_embed(pos[:, 1:].float(), (3, 6), (4, 4), 0)
    assert torch.equal(backbone.pos_embed[:, 1:], same_here.double())
    assert torch.equal(backbone.pos_embed[:, :1], pos[:, :1])


def test_square_grid_is_preferred_if_file_has_cls(load):
    """50 rows are CLS and 7 x 7 patches, not 5 x 10 patches."""
    pos = torch.randn(1, 50, 16, dtype=torch.float64)
    weights = dict(theirs(img_size=56).state_dict(), pos_embed=pos)
    backbone = load(weights, ours(img_size=(40, 80)))
    expected = resample_abs_pos_embed(pos, (5, 10))
    assert torch.equal(backbone.pos_embed, expected)


@pytest.mark.parametrize(
    'options', [dict(with_cls_pos=False), NO_CLS], ids=['no row', 'no CLS']
)
def test_own_rectangle_is_kept_without_cls_row(load, options):
    """50 rows are 5 x 10 patches, not CLS and 7 x 7 patches."""
    saved = ours(img_size=(40, 80), **options)
    for parameter in saved.parameters():
        torch.nn.init.normal_(parameter)
    backbone = load(saved.state_dict(), ours(img_size=(40, 80), **options))
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, saved.backbone.state_dict()[name]), name


def test_cls_row_is_added_to_token_if_file_is_foreign(load):
    """The same 50 rows with the timm name."""
    weights = theirs(img_size=56).state_dict()
    backbone = load(weights, ours(img_size=(40, 80), with_cls_pos=False))
    expected = resample_abs_pos_embed(weights['pos_embed'], (5, 10))[:, 1:]
    assert torch.equal(backbone.pos_embed, expected)
    cls_token = weights['cls_token'] + weights['pos_embed'][:, :1]
    assert torch.equal(backbone.cls_token, cls_token)


def test_rectangle_is_refused_by_square_model(load):
    """25 rows are CLS and 4 x 6 patches, not 5 x 5 patches."""
    saved = ours(img_size=(32, 48))
    for weights in (saved.state_dict(), saved.backbone.state_dict()):
        with pytest.raises(CheckpointError, match='25 rows'):
            load(weights, ours())


@pytest.mark.parametrize('size', [32, 48])
def test_mmpretrain_deit3_loads_without_cls_row(load, size):
    vit = dict(backbone_config(), type='DeiT3')
    cfg = dict(type='ImageClassifier', backbone=vit, head=HEAD)
    there = MODELS.build(cfg).double()
    rows = torch.nn.init.normal_(there.backbone.pos_embed).detach()
    backbone = load(
        {'state_dict': there.state_dict()}, ours('deit3', img_size=size)
    )
    expected = resample_abs_pos_embed(rows, (size // 8,) * 2, (4, 4), 0)
    assert torch.equal(backbone.pos_embed[:, 1:], expected)
    assert not backbone.pos_embed[:, 0].any()


def test_cls_row_is_dropped_if_model_has_no_cls(load):
    weights = theirs().state_dict()
    here = ours(img_size=48, **NO_CLS)
    expected = resample_abs_pos_embed(weights['pos_embed'], (6, 6))[:, 1:]
    assert torch.equal(load(weights, here).pos_embed, expected)


@pytest.mark.parametrize('num_clr, size', [(1, 48), (2, (40, 64))])
def test_clr_rows_by_the_authors_become_clr_pos(load, num_clr, size):
    there = theirs()
    weights = release(there, num_clr)
    here = ours(cla=True, img_size=size, cache=dict(CACHE, num_tokens=num_clr))
    backbone = load({'model': weights}, here)
    grid = (size // 8,) * 2 if isinstance(size, int) else (5, 8)
    rows = there.state_dict()['pos_embed']
    assert torch.equal(backbone.pos_embed, resample_abs_pos_embed(rows, grid))
    assert torch.equal(backbone.cache.clr, weights['clr'])
    new = weights['pos_embed'][:, -num_clr:]
    assert torch.equal(backbone.cache.clr_pos, new)


def test_clr_rows_are_dropped_without_cache(load):
    there = theirs()
    backbone = load(release(there, 2, cla=False), ours(img_size=48))
    expected = resample_abs_pos_embed(there.state_dict()['pos_embed'], (6, 6))
    assert torch.equal(backbone.pos_embed, expected)


def test_clr_pos_is_zero_if_file_has_no_rows(load):
    there = theirs('deit3')
    weights = dict(there.state_dict(), clr=torch.randn(1, 1, 16).double())
    backbone = load(weights, ours('deit3', reduce_at=(1,), cache=CACHE))
    assert torch.equal(backbone.cache.clr, weights['clr'])
    assert not backbone.cache.clr_pos.any()
    assert not backbone.pos_embed[:, 0].any()


@pytest.mark.parametrize('size, num_clr', [(16, 2), (32, 6)])
def test_own_grid_is_preferred_to_cls_and_clr_rows(load, size, num_clr):
    """4 rows are 2 x 2 patches, not CLS, 2 CLR tokens and one patch."""
    there = theirs('deit3', img_size=size)
    weights = dict(there.state_dict(), clr=torch.ones(1, num_clr, 16))
    cache = dict(CACHE, num_tokens=num_clr)
    here = ours('deit3', img_size=size, reduce_at=(1,), cache=cache)
    backbone = load(weights, here)
    assert torch.equal(backbone.pos_embed[:, 1:], there.pos_embed)
    assert not backbone.pos_embed[:, 0].any()
    assert not backbone.cache.clr_pos.any()


@pytest.mark.parametrize('clr_at_cls', [False, True])
@pytest.mark.parametrize('num_clr', [1, 3])
def test_new_clr_is_copied_from_cls(load, num_clr, clr_at_cls):
    there = theirs()
    cache = dict(CACHE, num_tokens=num_clr, clr_at_cls=clr_at_cls)
    here = ours(reduce_at=(1,), cache=cache)
    drawn = here.backbone.cache.clr_pos.clone()
    assert 0.01 < drawn.std() < 0.03
    cache = load(there.state_dict(), here).cache
    assert torch.equal(cache.clr, there.cls_token.expand(1, num_clr, 16))
    added = there.pos_embed[:, :1] if clr_at_cls else 0
    assert torch.equal(cache.clr_pos, drawn + added)


@pytest.mark.parametrize('clr_at_cls', [False, True])
def test_new_clr_pos_is_zero_if_cls_has_no_position(load, clr_at_cls):
    cache = dict(CACHE, clr_at_cls=clr_at_cls)
    here = ours('deit3', reduce_at=(1,), cache=cache)
    assert here.backbone.cache.clr_pos.any()
    cache = load(theirs('deit3').state_dict(), here).cache
    assert not cache.clr_pos.any()


@pytest.mark.parametrize('clr_at_cls', [False, True])
@torch.no_grad()
def test_new_clr_is_equal_with_and_without_cls_row(load, clr_at_cls):
    there = theirs()
    cache = dict(CACHE, num_tokens=2, clr_at_cls=clr_at_cls)
    options = dict(img_size=48, reduce_at=(1,), cache=cache)
    models = [ours(with_cls_pos=own, **options) for own in (True, False)]
    pos = models[0].backbone.cache.clr_pos
    models[1].backbone.cache.clr_pos.copy_(pos)
    models[1].head.load_state_dict(models[0].head.state_dict())
    caches = [load(there.state_dict(), model).cache for model in models]
    assert torch.equal(caches[1].clr, there.cls_token.expand(1, 2, 16))
    assert torch.equal(caches[1].clr_pos, caches[0].clr_pos)
    x = images(48)
    assert (models[1](x) - models[0](x)).abs().max() < 1e-12


def test_clr_is_initialized_again_if_number_differs(load):
    saved = ours(reduce_at=(1,), cache=CACHE)
    torch.nn.init.normal_(saved.backbone.cls_token)
    torch.nn.init.normal_(saved.backbone.cache.clr)
    two = dict(CACHE, num_tokens=2)
    cache = load(saved.state_dict(), ours(reduce_at=(1,), cache=two)).cache
    cls_token = saved.backbone.cls_token
    assert torch.equal(cache.clr, cls_token.expand(1, 2, 16))
    assert cache.clr_pos.any()
