# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Embedding: stems, positions, distillation token and registers."""

import pytest
import torch
from small_models import CACHE, REDUCE_AT, arch, build, images, vit

from mmclca.models.recording import patch_weight_maps
from mmclca.models.reduction.trace import patch_weights
from mmclca.registry import MODELS


@pytest.mark.parametrize(
    'config',
    [
        vit(1, with_cls_pos=False),
        dict(type='mmclca.CaiT', arch=arch(1), patch_size=8),
        dict(
            type='mmclca.PatchConvNet',
            arch=dict(embed_dims=16, num_layers=1),
            with_pos=True,
        ),
    ],
)
def test_positions_are_resized_on_load_and_for_other_images(config):
    model, larger = (build(dict(config, img_size=n)).eval() for n in (32, 64))
    larger.load_state_dict(model.state_dict())
    assert larger.pos_embed.shape[1] == 4 * model.pos_embed.shape[1]
    x = images(1, 64)
    torch.testing.assert_close(larger(x), model(x), atol=0.05, rtol=0)


def test_frozen_stages_freeze_added_embeddings():
    options = dict(with_cls_pos=False, dist_token=True, num_registers=2)
    frozen = MODELS.build(vit(2, frozen_stages=1, **options)).train()
    free = MODELS.build(vit(2, **options))
    for name in ('pos_embed', 'dist_token', 'register_tokens'):
        assert not frozen.get_parameter(name).requires_grad
        assert free.get_parameter(name).requires_grad


def test_initial_distillation_token_and_registers():
    wide = dict(vit(dist_token=True), arch='deit-small', depth=1)
    token = MODELS.build(wide).dist_token
    assert 0.016 < token.std() < 0.022
    assert token.abs().max() < 0.1  # truncated at 2, not at 2 sigma
    registers = MODELS.build(vit(num_registers=4)).register_tokens[0]
    assert 0 < registers.abs().max() < 1e-4
    assert len({tuple(row.tolist()) for row in registers}) == 4


@pytest.mark.parametrize('with_cls_pos', [True, False])
def test_order_of_tokens(with_cls_pos):
    backbone = build(
        vit(
            dist_token=True,
            with_cls_pos=with_cls_pos,
            num_registers=2,
            reduce_at=REDUCE_AT,
            cache=CACHE,
        )
    ).eval()
    assert backbone.num_prefix == 2 and backbone.is_distilled
    assert backbone.pos_embed.shape[1] == 16 + 2 * with_cls_pos
    x = images()
    tokens, hw = backbone.embed(x)
    assert (tokens.num_prefix, tokens.num_patches, hw) == (2, 16, (4, 4))
    pos = backbone.pos_embed if with_cls_pos else torch.zeros(1, 2, 16)
    prefix = torch.cat((backbone.cls_token, backbone.dist_token), dim=1)
    clr = backbone.cache.clr + backbone.cache.clr_pos
    parts = (
        (prefix + pos[:, :2]).expand(2, -1, -1),
        backbone.patch_embed(x)[0] + backbone.pos_embed[:, -16:],
        backbone.register_tokens.expand(2, -1, -1),
        clr.expand(2, -1, -1),
    )
    assert torch.equal(tokens.features, torch.cat(parts, dim=1))


@torch.no_grad()
def test_out_types_with_distillation_token():
    backbone = build(vit(dist_token=True, final_norm=False)).eval()
    assert backbone.out_type == 'prefix'
    x, outs = images(), {}
    joined = 'cls_average', 'cls_std', 'cls_average_std'
    for out_type in ('prefix', 'cls_token', 'raw', 'average', 'std', *joined):
        backbone.out_type = out_type
        (outs[out_type],) = backbone(x)
    cls, body = outs['raw'][:, 0], outs['raw'][:, 2:]
    assert torch.equal(outs['prefix'], outs['raw'][:, :2])
    assert torch.equal(outs['cls_token'], cls)
    assert torch.equal(outs['average'], body.mean(dim=1))
    std = body.std(dim=1, correction=0)
    torch.testing.assert_close(outs['std'], std)
    for name in joined:
        parts = [outs[part] for part in name.split('_')[1:]]
        assert torch.equal(outs[name], torch.cat((cls, *parts), dim=1))


@torch.no_grad()
@pytest.mark.parametrize('reducer', ['EViT', 'ATS'])
def test_distillation_token_does_not_score_patches(reducer):
    settings = dict(type=f'mmclca.{reducer}', keep_rate=0.5)
    backbone = build(vit(dist_token=True, reducer=settings, reduce_at=(0,)))
    x = images()

    def kept():
        return backbone.eval().forward_tokens(x)[1].patch_weights.amax(1) == 1

    before = kept()
    backbone.dist_token.normal_(std=10)
    assert torch.equal(kept(), before)
    backbone.cls_token.normal_(std=10)
    assert not torch.equal(kept(), before)


def test_featmap_excludes_registers():
    x = images()
    options = dict(num_registers=4, final_norm=False)
    backbone = build(vit(out_type='raw', **options)).eval()
    assert backbone(x)[0].shape == (2, 17 + 4, 16)
    featmap = build(vit(out_type='featmap', **options)).eval()
    featmap.load_state_dict(backbone.state_dict())
    patches = backbone(x)[0][:, 1:17].transpose(1, 2).unflatten(2, (4, 4))
    assert torch.allclose(featmap(x)[0], patches, atol=1e-6)


def test_registers_have_no_patch_weights():
    reducer = dict(type='mmclca.TopK', keep_rate=0.5)
    reduction = dict(reducer=reducer, reduce_at=REDUCE_AT, cache=CACHE)
    backbone = build(vit(num_registers=2, **reduction)).eval()
    _, tokens = backbone.forward_tokens(images())
    weights = patch_weights(tokens.trace, 2, 16)
    assert weights.shape[:2] == tokens.features.shape[:2]
    assert set(weights.unique().tolist()) <= {0.0, 1.0}
    assert (weights.sum(dim=1) <= 1).all()
    assert len(patch_weight_maps(tokens, (4, 4))) == 3  # one per reduction
    start = patch_weights(tokens.trace[:2], 2, 16)
    assert not start[:, 17:].any() and start[:, 1:17].sum() == 32
