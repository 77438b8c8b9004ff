# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from toy_reducers import shape

from mmclca.models.reduction.clustering import dpc_knn
from mmclca.models.reduction.reducers import DPCKNN
from mmclca.models.reduction.tokens import Tokens

B, C, P = 2, 8, 12


def toy(**options):
    """Build a reducer with one stage; CLS, patches and two cached tokens."""
    method = DPCKNN(
        0.5,
        backbone=shape(embed_dims=C, num_patches=P, num_stages=1),
        **options,
    ).double()
    for parameter in method.parameters():
        torch.nn.init.normal_(parameter)
    tokens = Tokens(torch.randn(B, 1 + P, C).double(), num_patches=P)
    return method.eval(), tokens.append(torch.randn(B, 2, C).double())


def test_dpcknn_averages_clusters_if_weights_are_equal():
    method, tokens = toy(equal_weight=True)
    assert not list(method.parameters())
    merged = method.before_layer(tokens, 0)
    y = tokens.features[:, 1 : 1 + P]
    label = dpc_knn(y, 6, 5, noise=0.0)
    for b in range(B):
        for cluster in range(6):
            mean = y[b, label[b] == cluster].mean(dim=0)
            assert torch.allclose(
                merged.features[b, 1 + cluster], mean, rtol=1e-5
            )


def test_dpcknn_is_finite_if_scores_are_large():
    method, tokens = toy()
    made = []
    for bias in (20, 200):  # a shift of all scores cancels
        torch.nn.init.constant_(method.float().stages[0].score.bias, bias)
        made.append(
            method.before_layer(
                tokens.with_features(tokens.features.float()), 0
            ).features
        )
    assert torch.allclose(*made, atol=1e-4)
    made[1].square().sum().backward()
    assert method.stages[0].score.weight.grad.isfinite().all()


def test_dpcknn_keeps_cls_and_cached_tokens():
    method, tokens = toy()
    merged = method.before_layer(tokens, 0)
    assert merged.features.shape == (B, 1 + 6 + 2, C)
    assert torch.allclose(merged.features[:, 0], tokens.features[:, 0])
    assert torch.allclose(merged.features[:, -2:], tokens.features[:, -2:])
    assert merged.num_cached == 2
    assert merged.num_pooled == 9


def test_dpcknn_noise_is_used_in_training_only():
    method, tokens = toy()
    tokens.features[:, 1:13:2] = tokens.features[:, 1:2]
    tokens.features[:, 2:14:2] = tokens.features[:, 2:3]
    same = [method.before_layer(tokens, 0).trace[1].target for _ in range(5)]
    assert all(torch.equal(same[0], target) for target in same)
    method.train()
    drawn = [method.before_layer(tokens, 0).trace[1].target for _ in range(20)]
    assert any(not torch.equal(drawn[0], target) for target in drawn)


def test_dpcknn_counts_leave_enough_neighbors():
    method = DPCKNN(0.1, backbone=shape(num_patches=196, num_stages=3))
    assert [method.count_patches(stage) for stage in range(3)] == [19, 5, 1]
    method = DPCKNN(
        0.1, backbone=shape(num_patches=196, num_stages=3), num_neighbors=2
    )
    assert [method.count_patches(stage) for stage in range(3)] == [19, 2, 1]
