# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Patches per token and method, on a grid of 2 x 3.

Scores are set by hand, so the expected maps of the six patches p0 to p5 are
known.
"""

import pytest
import torch
from small_models import CACHE, build, images, vit
from torch import nn
from torch.testing import assert_close

from mmclca.models import list_methods
from mmclca.models.recording import assigned, stage_weights, survivor_maps
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import patch_weights
from mmclca.registry import MODELS

HW = (2, 3)
ATTENTION = (0.1, 0.05, 0.30, 0.10, 0.20, 0.15, 0.10)  # from CLS to [CLS | p]


def reducer(name, embed_dims, num_stages=1, **options):
    """Build a method that keeps half of six patches, in evaluation."""
    if 'num_tokens' not in options:
        options.setdefault('keep_rate', 0.5)
    config = dict(
        type=f'mmclca.{name}',
        embed_dims=embed_dims,
        num_patches=6,
        num_stages=num_stages,
        **options,
    )
    return MODELS.build(config).eval()


def patches(*values):
    """Return CLS and six patches with these features."""
    x = torch.tensor(values).reshape(1, 6, -1)
    x = torch.cat((torch.zeros_like(x[:, :1]), x), dim=1)
    return Tokens(x, num_patches=6)


def attended(*images):
    """Return an attention with these CLS rows, one per image."""
    k = torch.tensor(images).log()[:, None, :, None]
    one = torch.ones_like(k)
    return Attended(one, k, one)


def keyed(*keys):
    """Return an attention with these keys, one per token."""
    k = torch.tensor(keys)[None, None]
    return Attended(k, k, k)


def check(tokens, assignment, survivors, image=0):
    """Compare the last maps with the expected ones."""
    token = assigned(stage_weights(tokens)[-1]).unflatten(1, HW)[image]
    assert token.tolist() == assignment
    most = survivor_maps(tokens, HW)[-1][image]
    assert_close(most, torch.tensor(survivors), atol=1e-5, rtol=1e-5)


def test_trace_of_topk_drops_patches():
    tokens = patches(*range(6))
    tokens = reducer('TopK', 1).between(tokens, attended(ATTENTION), 0)
    check(tokens, [[-1, 1, -1], [2, 3, -1]], [[0.0, 1, 0], [1, 1, 0]])


# groups p0-p1, p2 (equal to CLS) and p3-p5
KEYS = [[0.0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], *[[0.0, 0, 1]] * 3]


def test_trace_of_ats_ignores_padding():
    # points 1/8, 3/8 and 5/8 on the sums .056 .389 .5 .722 .889 1 of the
    # first image and .022 .911 ... of the second one, which keeps two
    pair = patches(*range(6)).x.expand(2, -1, -1)
    second = (0.1, 0.02, 0.80, 0.02, 0.02, 0.02, 0.02)
    tokens = reducer('ATS', 1).between(
        Tokens(pair, num_patches=6), attended(ATTENTION, second), 0
    )
    first = [[1, 2, -1], [3, -1, -1]], [[1.0, 1, 0], [1, 0, 0]]
    check(tokens, *first, image=0)
    weights = patch_weights(tokens.trace, 2, 6)
    padding = tokens.weight[1] == 0
    assert padding.sum() == 1 and not weights[1, padding].any()
    kept = (~padding).nonzero()[1:, 0].tolist()  # after CLS
    check(tokens, [[*kept, -1], [-1] * 3], [[1.0, 1, 0], [0, 0, 0]], image=1)


class Rating(nn.Module):
    """Score tokens by their first channel."""

    def forward(self, y, counts):
        return torch.stack((y[..., 0], -y[..., 0]), dim=-1)


def test_trace_of_dynamic_vit_drops_patches_in_evaluation():
    method = reducer('DynamicViT', 4)
    method.stages[0] = Rating()
    ratings = torch.tensor([-9.0, 3, -9, 1, 2, -9])
    tokens = patches(*ratings[:, None].expand(-1, 4).tolist())
    tokens = method.before(tokens, 0)
    check(tokens, [[-1, 1, -1], [3, 2, -1]], [[0.0, 1, 0], [1, 1, 0]])


def test_trace_of_dynamic_vit_masks_patches_in_training():
    method = reducer('DynamicViT', 4).train()
    method.stages[0] = Rating()
    ratings = torch.tensor([-99.0, 99, -99, 99, 99, -99])
    tokens = patches(*ratings[:, None].expand(-1, 4).tolist())
    tokens = method.before(tokens, 0)
    assert tokens.x.size(1) == 7
    check(tokens, [[-1, 2, -1], [4, 5, -1]], [[0.0, 1, 0], [1, 1, 0]])


MIX = torch.tensor(  # weights of p0 to p5 in three tokens
    [
        [0.50, 0.10, 0.10, 0.10, 0.10, 0.10],
        [0.10, 0.20, 0.40, 0.10, 0.10, 0.10],
        [0.05, 0.05, 0.05, 0.20, 0.30, 0.35],
    ]
)


def sit(**options):
    """Build a SiT whose weights are the features of the tokens."""
    method = reducer('SiT', 3, **options)
    for stage in method.stages:
        stage.weight = nn.Identity()
    return method


def test_trace_of_dpcknn_has_learned_weights():
    method = reducer('DPCKNN', 1, num_tokens=(2,), num_neighbors=3)
    nn.init.ones_(method.stages[0].score.weight)
    features = torch.tensor([0.0, 0.5, 1.1, 10.0, 10.7, 11.5])
    tokens = method.before(patches(*features.tolist()), 0)
    shares = features.reshape(HW).softmax(dim=1)  # weights are exp(feature)
    check(tokens, [[1, 1, 1], [2, 2, 2]], shares.tolist())


def recovered(tokens, num_tokens):
    return tokens.append(torch.ones(1, num_tokens, tokens.x.size(2)))


def test_trace_of_evit_composes_if_tokens_are_recovered():
    method = reducer('EViT', 1, num_stages=2)
    tokens = patches(*range(6))
    tokens = method.between(tokens, attended(ATTENTION), 0)
    # keeps p3, fused and a cached token: [CLS p1 p3 p4 fused cached cached]
    attention = (0.1, 0.05, 0.30, 0.10, 0.20, 0.15, 0.10)
    tokens = method.between(recovered(tokens, 2), attended(attention), 1)
    check(tokens, [[2, 4, 2], [1, 4, 2]], [[0.05, 0.05, 0.1], [1, 0.1, 0.1]])
    assert not patch_weights(tokens.trace, 1, 6)[0, 3].any()


def test_trace_of_tome_composes_if_tokens_are_recovered():
    method = reducer('ToMe', 1, num_stages=2)
    tokens = method.between(patches(*range(6)), keyed(*KEYS), 0)
    # [CLS p01 p2 p345 cached cached]: p2 merges into p01 (sizes 1 and 2), and
    # a cached token into p345 (sizes 1 and 3)
    keys = [[0.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]
    tokens = method.between(recovered(tokens, 2), keyed(*keys), 1)
    check(tokens, [[1, 1, 1], [2, 2, 2]], [[1 / 3] * 3, [1 / 4] * 3])
    weights = patch_weights(tokens.trace, 1, 6)
    assert weights.shape[1] == 4 and not weights[0, 3].any()


def test_trace_of_sit_composes_if_tokens_are_recovered():
    method = sit(num_stages=2, num_tokens=(3, 1))
    tokens = method.before(patches(*MIX.T.log().tolist()), 0)
    second = torch.tensor([0.4, 0.3, 0.2, 0.1])
    tokens = recovered(tokens, 1)
    x = torch.cat((torch.ones(1), second.log()))[None, :, None]
    tokens = method.before(tokens.with_x(x), 1)
    composed = (second[:3] @ MIX).reshape(HW)
    check(tokens, [[1, 1, 1], [1, 1, 1]], composed.tolist())


def test_trace_of_dpcknn_excludes_cached_tokens():
    method = reducer(
        'DPCKNN', 1, num_tokens=(2,), num_neighbors=3, equal_weight=True
    )
    tokens = recovered(patches(0.0, 0.5, 1.1, 10.0, 10.7, 11.5), 2)
    tokens = method.before(tokens, 0)
    assert tokens.x.size(1) == 5
    check(tokens, [[1, 1, 1], [2, 2, 2]], [[1 / 3] * 3, [1 / 3] * 3])


@pytest.mark.parametrize('name', list_methods())
def test_trace_composes_in_a_model_with_cache(name):
    options = dict(num_neighbors=2) if name == 'DPCKNN' else {}
    model = dict(type=f'mmclca.{name}', keep_rate=0.5, **options)
    backbone = build(vit(6, reducer=model, reduce_at=(1, 3), cache=CACHE))
    backbone.eval()
    with torch.inference_mode():
        _, tokens = backbone.forward_tokens(images(3))
    by_stage = stage_weights(tokens)
    final = patch_weights(tokens.trace, 3, 16)
    assert final.shape[:2] == tokens.x.shape[:2]
    num_tokens = by_stage[-1].size(1)
    assert_close(final[:, :num_tokens], by_stage[-1])
    assert not final[:, num_tokens:].any() and not final[:, 0].any()
    maps = survivor_maps(tokens, (4, 4))
    for weights, survivors in zip(by_stage, maps, strict=True):
        assert_close(weights.amax(dim=1).reshape(3, 4, 4), survivors)
        assert survivors.amin() >= 0 and 0 < survivors.amax() <= 1 + 1e-6
