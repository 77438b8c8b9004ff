# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch.nn.functional import normalize
from toy_reducers import shape

from mmclca.models.reduction.reducers import PatchMerger, Sinkhorn, SiT
from mmclca.models.reduction.reducers.sinkhorn import transport
from mmclca.models.reduction.tokens import Tokens

B, N, C = 2, 7, 8


def test_patch_merger_has_one_query_per_token():
    merger = PatchMerger(
        0.5, backbone=shape(embed_dims=C, num_patches=20, num_stages=3)
    )
    assert [len(stage.queries) for stage in merger.stages] == [10, 5, 2]
    merger = PatchMerger(
        num_tokens=[9, 9, 1],
        backbone=shape(embed_dims=C, num_patches=20, num_stages=3),
    )
    assert [len(stage.queries) for stage in merger.stages] == [9, 9, 1]


def slow_transport(score, eps, iterations):
    """Run Sinkhorn iterations without logarithms, by loops."""
    K, N = len(score), len(score[0])
    plan = (score / eps).exp().tolist()
    for _ in range(iterations):
        for k in range(K):  # each row sums to 1 / (K + N)
            total = sum(plan[k])
            plan[k] = [value / total / (K + N) for value in plan[k]]
        for n in range(N):  # then each column
            total = sum(plan[k][n] for k in range(K))
            for k in range(K):
                plan[k][n] = plan[k][n] / total / (K + N)
    return torch.tensor(plan, dtype=score.dtype) * (K + N)


@pytest.mark.parametrize('iterations', [1, 3])
@pytest.mark.parametrize('K', [1, 3])
def test_transport_equals_loop(K, iterations):
    score = torch.randn(B, K, N).double()
    plan = transport(score, 0.2, iterations)
    for b in range(B):
        assert torch.allclose(
            plan[b], slow_transport(score[b], 0.2, iterations)
        )


def test_transport_is_finite_if_eps_is_small():
    plan = transport(torch.randn(B, 3, N), 1e-3, 20)
    assert plan.isfinite().all()
    assert torch.allclose(plan.sum(1), torch.ones(B, N))


def test_sinkhorn_mixes_normalized_tokens_by_direction_of_centers():
    method = Sinkhorn(
        0.5, backbone=shape(embed_dims=C, num_patches=N, num_stages=1), eps=0.5
    ).double()
    tokens = Tokens(torch.randn(B, 1 + N, C).double(), num_patches=N)
    mixed = method.before_layer(tokens, 0)
    assert torch.equal(mixed.features[:, 0], tokens.features[:, 0])
    centers = normalize(method.stages[0].detach(), dim=-1)
    for b in range(B):
        y = normalize(tokens.features[b, 1:], dim=-1)
        plan = slow_transport(centers @ y.T, 0.5, 3)
        assert torch.allclose(mixed.features[b, 1:], plan @ y)
    with torch.no_grad():
        method.stages[0].mul_(7)
    assert torch.allclose(
        method.before_layer(tokens, 0).features, mixed.features
    )


def toy(**options):
    """Build a SiT, and the tokens after its stage."""
    method = SiT(
        0.5,
        backbone=shape(num_patches=7, num_stages=1, embed_dims=C),
        **options,
    ).double()
    for parameter in method.parameters():
        torch.nn.init.normal_(parameter)
    x, clr = torch.randn(B, 1 + N, C).double(), torch.randn(B, 1, C).double()
    return method, method.before_layer(Tokens(x, num_patches=7).append(clr), 0)


def test_sit_token_loss_equals_loop_if_recalibrated():
    method, slimmed = toy(recalibrate=True)
    assert method.needs_teacher
    teacher = torch.randn(B, 7, C).double()
    y = slimmed.features[:, 1:]
    expected = (method.reverse(y) @ y - teacher).square().mean()
    assert torch.allclose(method.token_loss(slimmed, teacher), expected)


def test_sit_token_loss_uses_average_targets_by_default():
    method, slimmed = toy()
    assert not method.needs_teacher and method.reverse is None
    teacher = torch.randn(B, 7, C).double()
    mix = slimmed.trace[1].mix[:, :, 1:8]  # patches only
    mix = mix / mix.sum(-1, keepdim=True)
    expected = (slimmed.features[:, 1:] - mix @ teacher).square().mean()
    assert torch.allclose(method.token_loss(slimmed, teacher), expected)
