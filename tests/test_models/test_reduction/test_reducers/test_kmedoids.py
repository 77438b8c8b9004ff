# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.models import KMedoids
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.clustering import k_medoids
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept

B, N, C = 2, 11, 6


def toy(**options):
    method = KMedoids(0.4, num_patches=N - 1, num_stages=1, **options)
    x = torch.randn(B, N, C).double()
    q, k, v = torch.randn(3, B, 2, N, 3).double().unbind(0)
    return method, Tokens(x, num_patches=N - 1), Attended(q, k, v)


def check(kept, tokens, medoids):
    """Check that CLS and the medoids are kept unchanged."""
    assert [type(record) for record in kept.trace] == [Kept]
    for b in range(B):
        index = [0, *(medoid + 1 for medoid in medoids[b].tolist())]
        assert torch.equal(kept.x[b], tokens.x[b, index])


@pytest.mark.parametrize('num_iterations', [0, 3])
def test_kmedoids_weights_are_cls_attention(num_iterations):
    method, tokens, attended = toy(num_iterations=num_iterations)
    weight = attended.cls_attn().mean(dim=1)[:, 1:]
    medoids = k_medoids(tokens.x[:, 1:], weight, 4, num_iterations)
    check(method.between(tokens, attended, 0), tokens, medoids)


def test_kmedoids_weights_are_received_attention_if_set():
    method, tokens, attended = toy(attention_of_all=True)
    logits = attended.q @ attended.k.transpose(2, 3) / 3**0.5
    weight = logits.softmax(-1).sum(dim=(1, 2))[:, 1:]
    medoids = k_medoids(tokens.x[:, 1:], weight, 4, 3)
    kept = method.between(tokens, attended, 0)
    check(kept, tokens, medoids)
    other, _, _ = toy()
    assert not torch.equal(other.between(tokens, attended, 0).x, kept.x)


def test_kmedoids_keeps_all_tokens_if_few_remain():
    method, _, _ = toy()
    method.num_tokens = [9]
    tokens = Tokens(torch.randn(1, 4, C), num_patches=N - 1)
    q, k, v = torch.randn(3, 1, 2, 4, 3).unbind(0)
    kept = method.between(tokens, Attended(q, k, v), 0)
    assert sorted(kept.trace[0].index[0].tolist()) == [0, 1, 2, 3]
