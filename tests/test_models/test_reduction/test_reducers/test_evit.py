# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch

from mmclca.models import EViT
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.reducers.evit import fuse_weights
from mmclca.models.reduction.reducers.topk import top_tokens
from mmclca.models.reduction.tokens import Tokens


def slow_fuse_weights(scores, kept):
    """Return the scores for dropped tokens, 0 for kept tokens."""
    return [
        0.0 if token in kept else scores[token - 1]
        for token in range(len(scores) + 1)
    ]


@pytest.mark.parametrize('keep_rate', [0.7, 0.5, 0.25, 0.1])
@pytest.mark.parametrize('num_tokens', [1, 2, 4, 10, 31])
def test_fuse_weights_equal_scores_of_dropped_tokens(num_tokens, keep_rate):
    score = torch.rand(3, num_tokens)
    index = top_tokens(score, math.ceil(keep_rate * num_tokens))
    weights = fuse_weights(score, index)
    assert weights.shape == (3, 1, num_tokens + 1)
    for row, scores, kept in zip(
        weights[:, 0].tolist(), score.tolist(), index.tolist(), strict=True
    ):
        assert row == slow_fuse_weights(scores, kept)


def test_evit_orders_cls_kept_fused():
    x = torch.randn(1, 6, 3)
    score = torch.tensor([[0.10, 0.30, 0.05, 0.20, 0.15]])  # CLS has 0.2
    q = torch.ones(1, 1, 6, 1)
    k = torch.cat((torch.tensor([[0.2]]), score), 1).log()[:, None, :, None]
    tokens = EViT(0.4, num_stages=1).between(Tokens(x), Attended(q, k, q), 0)
    fused = (
        0.10 * x[0, 1] + 0.05 * x[0, 3] + 0.15 * x[0, 5]
    )  # weights sum to 0.3
    expected = torch.stack([x[0, 0], x[0, 2], x[0, 4], fused])
    assert torch.allclose(tokens.x[0], expected, atol=1e-6)


def test_evit_averages_dropped_tokens_if_normalized():
    q, k, v = torch.randn(3, 2, 2, 8, 4).unbind(0)
    x = torch.randn(2, 8, 3)
    made = []
    for normalize in (False, True):
        reducer = EViT(0.5, normalize=normalize, num_stages=1)
        made.append(reducer.between(Tokens(x), Attended(q, k, v), 0))
    plain, averaged = made
    total = plain.trace[0].mix.sum(dim=-1)  # (B, 1)
    assert (total < 0.99).all()
    assert torch.allclose(averaged.x[:, -1], plain.x[:, -1] / total)
    assert torch.equal(averaged.x[:, :-1], plain.x[:, :-1])


def test_fused_token_has_gradients_of_features_and_scores():
    q, k, v = torch.randn(3, 2, 2, 8, 4).unbind(0)
    for leaf in (q, k):
        leaf.requires_grad_()
    x = torch.randn(2, 8, 3, requires_grad=True)
    reducer = EViT(0.5, num_stages=1)
    tokens = reducer.between(Tokens(x), Attended(q, k, v), 0)
    tokens.x[:, -1].square().sum().backward()
    dropped = (x.grad != 0).any(-1).sum(dim=1)
    assert dropped.tolist() == [3, 3]
    assert q.grad[:, :, 0].any()
    assert not q.grad[:, :, 1:].any()
    assert k.grad.any()
