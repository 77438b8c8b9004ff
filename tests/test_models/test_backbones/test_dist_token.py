# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The distillation token: after CLS, and like it in all but the scores."""

import pytest
import torch
from small_models import CACHE, REDUCE_AT, build, images, vit

from mmclca.registry import MODELS


def distilled(**options):
    return build(vit(dist_token=True, **options)).eval()


@pytest.mark.parametrize('with_cls_pos', [True, False])
def test_it_is_between_cls_and_the_patches(with_cls_pos):
    backbone = distilled(
        with_cls_pos=with_cls_pos,
        num_registers=2,
        reduce_at=REDUCE_AT,
        cache=CACHE,
    )
    assert backbone.num_prefix == 2 and backbone.is_distilled
    assert backbone.pos_embed.shape[1] == 16 + 2 * with_cls_pos
    x = images()
    tokens, _ = backbone.embed(x)
    assert tokens.num_prefix == 2
    assert tokens.x.shape == (2, 2 + 16 + 2 + 1, 16)
    pos = backbone.pos_embed if with_cls_pos else torch.zeros(1, 2, 16)
    prefix = torch.cat((backbone.cls_token, backbone.dist_token), dim=1)
    assert torch.equal(tokens.x[0, :2], (prefix + pos[:, :2])[0])
    patches = backbone.patch_embed(x)[0] + backbone.pos_embed[:, -16:]
    assert torch.equal(tokens.x[:, 2:18], patches)


@torch.no_grad()
def test_outputs():
    backbone, x = distilled(final_norm=False), images()
    assert backbone.out_type == 'prefix'
    outs = {}
    both = 'cls_average', 'cls_std', 'cls_average_std'
    for out_type in ('prefix', 'cls_token', 'raw', 'average', 'std', *both):
        backbone.out_type = out_type
        (outs[out_type],) = backbone(x)
    assert torch.equal(outs['prefix'], outs['raw'][:, :2])
    assert torch.equal(outs['cls_token'], outs['raw'][:, 0])
    assert torch.equal(outs['average'], outs['raw'][:, 2:].mean(dim=1))
    std = outs['raw'][:, 2:].std(dim=1, correction=0)
    torch.testing.assert_close(outs['std'], std)
    assert torch.equal(outs['cls_average'][:, :16], outs['cls_token'])
    assert torch.equal(outs['cls_std'][:, 16:], outs['std'])
    three = outs['cls_average'], outs['std']
    assert torch.equal(outs['cls_average_std'], torch.cat(three, dim=1))


@torch.no_grad()
@pytest.mark.parametrize('reducer', ['TopK', 'EViT', 'ATS'])
def test_cls_decides_what_is_kept(reducer):
    settings = dict(type=f'mmclca.{reducer}', keep_rate=0.5)
    backbone, x = distilled(reducer=settings, reduce_at=(0,)), images()

    def kept():
        return backbone.forward_tokens(x)[1].patch_weights.amax(dim=1) == 1

    before = kept()
    backbone.dist_token.normal_(std=10)
    assert torch.equal(kept(), before)
    backbone.cls_token.normal_(std=10)
    assert not torch.equal(kept(), before)


def test_freezing_and_start():
    backbone = MODELS.build(vit(dist_token=True, frozen_stages=1))
    assert not backbone.train().dist_token.requires_grad
    wide = dict(vit(dist_token=True), arch='deit-small', depth=1)
    token = MODELS.build(wide).dist_token
    assert token.requires_grad
    assert 0.016 < token.std() < 0.022  # 0.0195: it is cut at 2, not 2 sigma
    assert token.abs().max() < 0.1
