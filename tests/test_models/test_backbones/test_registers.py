# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Registers: learned tokens between the patches and the CLR tokens."""

import pytest
import torch
from small_models import (
    CACHE,
    REDUCE_AT,
    REDUCERS,
    build,
    classifier,
    gradients,
    images,
    token_counts,
    vit,
)

from mmclca.models.recording import survivor_maps
from mmclca.models.reduction.trace import patch_weights
from mmclca.registry import MODELS


def with_registers(num_registers=2, **options):
    return build(vit(num_registers=num_registers, **options))


def test_they_follow_the_patches_without_a_position():
    backbone = with_registers(reduce_at=REDUCE_AT, cache=CACHE).eval()
    x = images()
    tokens, hw = backbone.embed(x)
    assert hw == (4, 4) and tokens.num_patches == 16
    assert tokens.x.shape == (2, 1 + 16 + 2 + 1, 16)
    registers = backbone.register_tokens.expand(2, -1, -1)
    assert torch.equal(tokens.x[:, 17:19], registers)
    clr = backbone.cache.clr + backbone.cache.clr_pos
    assert torch.equal(tokens.x[:, 19:], clr.expand(2, -1, -1))


@pytest.mark.parametrize('reducer', REDUCERS)
def test_every_reducer_takes_them(reducer):
    """At most as many more tokens as there are registers, and a gradient."""
    options = dict(
        reducer=dict(type=f'mmclca.{reducer}', keep_rate=0.5),
        reduce_at=(1, 2, 3),
        cache=CACHE,
    )
    model = build(classifier(vit(5, num_registers=3, **options)))
    model.eval()
    x = images()
    counts = token_counts(model.backbone, x)
    plain = token_counts(build(vit(5, **options)).eval(), x)
    assert counts[0][0] == plain[0][0] + 3
    added = [new[1] - old[1] for new, old in zip(counts, plain, strict=True)]
    assert all(0 <= more <= 3 for more in added)
    assert torch.isfinite(model(x)).all()
    model.train()
    model(x).square().sum().backward()
    assert gradients(model)['backbone.register_tokens'].any()


def test_without_a_reducer_all_is_as_long_as_before():
    x = images()
    backbone = with_registers(4, out_type='raw', final_norm=False).eval()
    assert backbone(x)[0].shape == (2, 17 + 4, 16)
    featmap = with_registers(4, out_type='featmap', final_norm=False).eval()
    featmap.load_state_dict(backbone.state_dict())
    patches = backbone(x)[0][:, 1:17].transpose(1, 2).unflatten(2, (4, 4))
    assert torch.allclose(featmap(x)[0], patches, atol=1e-6)


@pytest.mark.parametrize('cache', [None, CACHE])
def test_they_stand_for_no_patch(cache):
    backbone = with_registers(
        reducer=dict(type='mmclca.TopK', keep_rate=0.5),
        reduce_at=REDUCE_AT,
        cache=cache,
    ).eval()
    _, tokens = backbone.forward_tokens(images())
    weights = patch_weights(tokens.trace, 2, 16)
    assert weights.shape[:2] == tokens.x.shape[:2]
    assert set(weights.unique().tolist()) <= {0.0, 1.0}
    assert (weights.sum(dim=1) <= 1).all()
    maps = survivor_maps(tokens, (4, 4))
    assert len(maps) == 3  # pictures of reductions, of nothing else
    start = patch_weights(tokens.trace[: 1 + (cache is not None)], 2, 16)
    assert not start[:, 17:].any() and start[:, 1:17].sum() == 32


def test_freezing():
    backbone = with_registers(frozen_stages=1)
    assert not backbone.register_tokens.requires_grad
    assert with_registers().register_tokens.requires_grad


def test_they_start_apart():
    registers = MODELS.build(vit(num_registers=4)).register_tokens[0]
    assert registers.shape == (4, 16)
    assert 0 < registers.abs().max() < 1e-4
    assert len({tuple(row.tolist()) for row in registers}) == 4
