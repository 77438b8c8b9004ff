# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Load files and models with a distillation token."""

import pytest
import torch
from foreign_models import CACHE, STYLES, images, ours, theirs
from timm.layers import resample_abs_pos_embed
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import checkpoint_filter_fn

from mmclca.checkpoints.error import CheckpointError

DISTILLED = dict(
    dist_token=True,
    head=dict(type='mmclca.DistilledHead', num_classes=5, in_channels=16),
)


def distilled(img_size=32):
    """Distilled timm model with the parts of a DeiT release."""
    options = dict(STYLES['plain'][0], img_size=img_size, patch_size=8)
    model = VisionTransformerDistilled(
        **options, embed_dim=16, depth=3, num_heads=2, mlp_ratio=2
    )
    model.reset_classifier(5)
    for parameter in model.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


@pytest.mark.usefixtures('report_is_golden')
@pytest.mark.parametrize('size', [(48, 48), (24, 56)])
@torch.no_grad()
def test_distilled_release_equals_timm(size, load):
    weights = distilled().state_dict()
    there = distilled(size)
    there.load_state_dict(checkpoint_filter_fn(dict(weights), there))
    here = load(weights, ours(img_size=size, **DISTILLED))
    x = images(*size)
    assert (here(x) - there(x)).abs().max() < 1e-12


@pytest.mark.parametrize(
    'options', [dict(img_size=(32, 48), with_cls_pos=False), {}]
)
def test_distilled_checkpoint_is_restored(options, load):
    saved = ours(**options, **DISTILLED).state_dict()
    again = load(saved, ours(**options, **DISTILLED)).state_dict()
    assert all(torch.equal(x, saved[name]) for name, x in again.items())


def test_positions_are_added_to_tokens_without_rows(load):
    weights = distilled().state_dict()
    rows = weights['pos_embed']
    backbone = load(
        weights, ours(with_cls_pos=False, img_size=48, **DISTILLED)
    ).backbone
    for i, name in enumerate(('cls_token', 'dist_token')):
        expected = weights[name] + rows[:, i : i + 1]
        assert torch.equal(getattr(backbone, name), expected)
    patches = resample_abs_pos_embed(rows, (6, 6), num_prefix_tokens=2)
    assert torch.equal(backbone.pos_embed, patches[:, 2:])
    weights['pos_embed'] = rows[:, 2:]
    backbone = load(weights, ours(**DISTILLED)).backbone
    assert torch.equal(backbone.pos_embed[:, 2:], rows[:, 2:])
    assert not backbone.pos_embed[:, :2].any()


@pytest.mark.parametrize('with_cls_pos', [True, False])
def test_clr_starts_at_cls_if_distilled(with_cls_pos, load):
    weights = distilled().state_dict()
    cache = dict(CACHE, clr_at_cls=True)
    options = dict(DISTILLED, reduce_at=(1,), cache=cache)
    here = ours(img_size=48, with_cls_pos=with_cls_pos, **options)
    drawn = here.backbone.cache.clr_pos.clone()
    cache = load(weights, here).backbone.cache
    assert torch.equal(cache.clr, weights['cls_token'])
    pos = drawn + weights['pos_embed'][:, :1]
    assert torch.equal(cache.clr_pos, pos)


@pytest.mark.parametrize('with_cls_pos', [True, False])
@torch.no_grad()
def test_distillation_token_starts_as_cls(with_cls_pos, load):
    there = theirs()
    here = ours(with_cls_pos=with_cls_pos, **DISTILLED)
    backbone = load(there.state_dict(), here).backbone
    x = images(32)
    cls_token, dist_token = backbone(x)[0].chunk(2, dim=1)
    assert torch.equal(cls_token, dist_token)
    assert not torch.equal(cls_token, torch.zeros_like(cls_token))


def test_distilled_file_is_refused_by_plain_model(load):
    with pytest.raises(CheckpointError, match='dist_token is'):
        load(distilled().state_dict(), ours(img_size=48))
