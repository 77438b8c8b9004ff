# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.models import Sinkhorn
from mmclca.models.reduction.reducers.sinkhorn import transport
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept

B, N, C = 2, 7, 8


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


@pytest.mark.parametrize('iterations', [1, 3, 10])
@pytest.mark.parametrize('eps', [0.2, 1.0])
@pytest.mark.parametrize('K', [1, 3, 7])
def test_transport_equals_loop(K, eps, iterations):
    score = torch.randn(B, K, N).double()
    plan = transport(score, eps, iterations)
    for b in range(B):
        expected = slow_transport(score[b], eps, iterations)
        assert torch.allclose(plan[b], expected)


def test_transport_converges_to_even_rows():
    score = torch.randn(B, 3, N).double()
    plan = transport(score, 1.0, 3)
    assert torch.allclose(plan.sum(1), torch.ones(B, N).double())
    assert (plan > 0).all()
    plan = transport(score, 1.0, 200)
    even = torch.full((B, 3), N / 3).double()
    assert torch.allclose(plan.sum(2), even, atol=1e-6)


def test_transport_is_finite_if_eps_is_small():
    plan = transport(torch.randn(B, 3, N), 1e-3, 20)
    assert plan.isfinite().all()
    assert torch.allclose(plan.sum(1), torch.ones(B, N))


def test_sinkhorn_mixes_normalized_tokens():
    method = Sinkhorn(
        0.5, embed_dims=C, num_patches=N, num_stages=1, eps=0.5
    ).double()
    tokens = Tokens(torch.randn(B, 1 + N, C).double(), num_patches=N)
    mixed = method.before(tokens, 0)
    assert mixed.x.shape == (B, 1 + 3, C)
    assert torch.equal(mixed.x[:, 0], tokens.x[:, 0])
    centers = [row / row.norm() for row in method.stages[0]]
    for b in range(B):
        y = [row / row.norm() for row in tokens.x[b, 1:]]
        score = torch.stack(
            [torch.stack([center @ row for row in y]) for center in centers]
        ).detach()
        plan = slow_transport(score, 0.5, 3)
        for k in range(3):
            expected = sum(plan[k, n] * y[n] for n in range(N))
            assert torch.allclose(mixed.x[b, 1 + k], expected)
    assert [type(record) for record in mixed.trace] == [Kept]


def test_sinkhorn_ignores_norm_of_centers():
    method = Sinkhorn(0.5, embed_dims=C, num_patches=N, num_stages=1)
    tokens = Tokens(torch.randn(B, 1 + N, C), num_patches=N)
    before = method.before(tokens, 0).x
    with torch.no_grad():
        method.stages[0].mul_(7)
    assert torch.allclose(method.before(tokens, 0).x, before, atol=1e-6)
