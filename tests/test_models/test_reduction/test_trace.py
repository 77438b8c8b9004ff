# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Patches per token, by method, on a grid of 2 x 3.

Scores are set by hand, so the expected maps of the six patches p0 to p5 are
known.
"""

import pytest
import torch
from small_models import CACHE, build, images, vit
from torch import nn
from torch.testing import assert_close
from toy_reducers import shape

from mmclca.models.recording import assigned, patch_weight_maps, stage_weights
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.reducers import DynamicViT, EViT
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import patch_weights


def patches(*values):
    """Return CLS and six patches with these features."""
    x = torch.tensor(values).reshape(1, 6, -1)
    x = torch.cat((torch.zeros_like(x[:, :1]), x), dim=1)
    return Tokens(x, num_patches=6)


def attended(row):
    """Return an attention with this CLS row."""
    k = torch.tensor(row).log()[None, None, :, None]
    return Attended(torch.ones_like(k), k, k)


def check(tokens, assignment, largest):
    """Compare the last maps with the expected ones."""
    token = assigned(stage_weights(tokens)[-1]).unflatten(1, (2, 3))[0]
    assert token.tolist() == assignment
    most = patch_weight_maps(tokens, (2, 3))[-1][0]
    assert_close(most, torch.tensor(largest), atol=1e-5, rtol=1e-5)


def test_trace_of_evit_composes_if_tokens_are_recovered():
    method = EViT(0.5, backbone=shape(num_patches=6, num_stages=2))
    attention = attended((0.1, 0.05, 0.30, 0.10, 0.20, 0.15, 0.10))
    tokens = method.after_attention(patches(*range(6)), attention, 0)
    # keeps p3, fused and a cached token: [CLS p1 p3 p4 fused cached cached]
    tokens = method.after_attention(
        tokens.append(torch.ones(1, 2, 1)), attention, 1
    )
    check(tokens, [[2, 4, 2], [1, 4, 2]], [[0.05, 0.05, 0.1], [1, 0.1, 0.1]])
    assert not patch_weights(tokens.trace, 1, 6)[0, 3].any()


class Rating(nn.Module):
    """Score tokens by their first channel."""

    def forward(self, y, counts):
        return torch.stack((y[..., 0], -y[..., 0]), dim=-1)


@pytest.mark.parametrize(
    'train, assignment',
    [(False, [[-1, 1, -1], [3, 2, -1]]), (True, [[-1, 2, -1], [4, 5, -1]])],
)
def test_trace_of_dynamic_vit_drops_or_masks_patches(train, assignment):
    method = DynamicViT(
        0.5, backbone=shape(embed_dims=4, num_patches=6, num_stages=1)
    )
    method.train(train).stages[0] = Rating()
    ratings = [[rating] * 4 for rating in (-99.0, 99, -99, 97, 98, -99)]
    tokens = method.before_layer(patches(*ratings), 0)
    assert tokens.features.size(1) == (7 if train else 4)
    check(tokens, assignment, [[0.0, 1, 0], [1, 1, 0]])


# dropped, fused, merged, mixed and padded tokens
@pytest.mark.parametrize('name', ['DynamicViT', 'EViT', 'ToMe', 'SiT', 'ATS'])
def test_trace_composes_in_a_model_with_cache(name):
    model = dict(type=f'mmclca.{name}', keep_rate=0.5)
    backbone = build(vit(6, reducer=model, reduce_at=(1, 3), cache=CACHE))
    backbone.eval()
    with torch.inference_mode():
        _, tokens = backbone.forward_tokens(images(3))
    by_stage = stage_weights(tokens)
    final = tokens.patch_weights
    assert final.shape[:2] == tokens.features.shape[:2]
    num_tokens = by_stage[-1].size(1)
    assert_close(final[:, :num_tokens], by_stage[-1])
    assert not final[:, num_tokens:].any() and not final[:, 0].any()
    for largest in patch_weight_maps(tokens, (4, 4)):
        assert largest.amin() >= 0 and 0 < largest.amax() <= 1 + 1e-6
