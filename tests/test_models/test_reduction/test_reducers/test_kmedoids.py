# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from toy_reducers import shape

from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.clustering import k_medoids
from mmclca.models.reduction.reducers import KMedoids
from mmclca.models.reduction.tokens import Tokens

B, N, C = 2, 11, 6


def toy(**options):
    method = KMedoids(
        0.4, backbone=shape(num_patches=N - 1, num_stages=1), **options
    )
    x = torch.randn(B, N, C).double()
    q, k, v = torch.randn(3, B, 2, N, 3).double().unbind(0)
    return method, Tokens(x, num_patches=N - 1), Attended(q, k, v)


@pytest.mark.parametrize('attention_of_all', [False, True])
def test_kmedoids_weights_are_attention(attention_of_all):
    method, tokens, attended = toy(
        num_iterations=2, attention_of_all=attention_of_all
    )
    logits = attended.q @ attended.k.transpose(2, 3) / 3**0.5
    maps = logits.softmax(-1).sum(dim=1)
    weight = maps.sum(dim=1) if attention_of_all else maps[:, 0]
    medoids = k_medoids(tokens.features[:, 1:], weight[:, 1:], 4, 2)
    kept = method.after_attention(tokens, attended, 0)
    for b in range(B):
        index = [0, *(medoid + 1 for medoid in medoids[b].tolist())]
        assert torch.equal(kept.features[b], tokens.features[b, index])


def test_kmedoids_keeps_all_tokens_if_few_remain():
    method, _, _ = toy()
    method.num_tokens = [9]
    tokens = Tokens(torch.randn(1, 4, C), num_patches=N - 1)
    q, k, v = torch.randn(3, 1, 2, 4, 3).unbind(0)
    kept = method.after_attention(tokens, Attended(q, k, v), 0)
    assert sorted(kept.trace[0].index[0].tolist()) == [0, 1, 2, 3]
