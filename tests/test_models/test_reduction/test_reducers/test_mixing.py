# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from torch.nn.functional import gelu, layer_norm

from mmclca.models import PatchMerger, Sinkhorn, SiT
from mmclca.models.reduction.reducers.sinkhorn import transport
from mmclca.models.reduction.reducers.sit import Slimming
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Appended, Kept

B, N, C, M = 2, 7, 8, 3


def test_patch_merger_averages_normalized_tokens():
    merger = PatchMerger(
        0.5, embed_dims=C, num_patches=N, num_stages=1
    ).double()
    merging = merger.stages[0]
    torch.nn.init.normal_(merging.norm.weight)
    torch.nn.init.normal_(merging.norm.bias)
    tokens = Tokens(torch.randn(B, 1 + N, C).double(), num_patches=N)
    merged = merger.before(tokens, 0)
    assert merging.queries.shape == (3, C)
    assert merged.x.shape == (B, 1 + 3, C)
    assert torch.equal(merged.x[:, 0], tokens.x[:, 0])
    for b in range(B):
        y = [
            layer_norm(row, (C,), merging.norm.weight, merging.norm.bias)
            for row in tokens.x[b, 1:]
        ]
        for m, query in enumerate(merging.queries):
            parts = [(query @ row).exp() for row in y]
            mean = sum(p * row for p, row in zip(parts, y, strict=True))
            assert torch.allclose(merged.x[b, 1 + m], mean / sum(parts))
    assert [type(record) for record in merged.trace] == [Kept]
    mix = merged.trace[0].mix
    assert torch.allclose(mix.sum(-1), torch.ones(B, 3).double())
    assert not mix[:, :, 0].any()


def test_patch_merger_has_one_query_per_token():
    merger = PatchMerger(0.5, embed_dims=C, num_patches=20, num_stages=3)
    assert [len(stage.queries) for stage in merger.stages] == [10, 5, 2]
    merger = PatchMerger(
        num_tokens=[9, 9, 1], embed_dims=C, num_patches=20, num_stages=3
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


@pytest.mark.parametrize('iterations', [1, 3, 10])
@pytest.mark.parametrize('eps', [0.2, 1.0])
@pytest.mark.parametrize('K', [1, 3, 7])
def test_transport_equals_loop(K, eps, iterations):
    score = torch.randn(B, K, N).double()
    plan = transport(score, eps, iterations)
    for b in range(B):
        expected = slow_transport(score[b], eps, iterations)
        assert torch.allclose(plan[b], expected)


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


def moved(module):
    """Convert a module to float64 and randomize all parameters."""
    for parameter in module.double().parameters():
        torch.nn.init.normal_(parameter)
    return module


def slow_weights(slimming, y):
    """Compute the weights (M, N) for one image by a loop."""
    norm, first, _, second = slimming.weight
    logits = [
        second(gelu(first(layer_norm(row, (C,), norm.weight, norm.bias))))
        for row in y
    ]
    rows = []
    for m in range(M):
        parts = [
            (row[m] * slimming.scale.flatten()[0]).exp() for row in logits
        ]
        rows.append(torch.stack([part / sum(parts) for part in parts]))
    return torch.stack(rows)


def test_slimming_weights_equal_loop():
    slimming = moved(Slimming(C, M))
    y = torch.randn(B, N, C).double()
    weights = slimming(y)
    assert weights.shape == (B, M, N)
    for b in range(B):
        assert torch.allclose(weights[b], slow_weights(slimming, y[b]))
    assert torch.allclose(weights.sum(-1), torch.ones(B, M).double())


def toy(**options):
    method = SiT(num_patches=7, num_stages=1, embed_dims=C, **options)
    x, clr = torch.randn(B, 1 + N, C).double(), torch.randn(B, 1, C).double()
    return moved(method), Tokens(x, num_patches=7).append(clr)


def test_sit_sums_all_tokens_after_cls():
    method, tokens = toy(keep_rate=0.5)
    slimmed = method.before(tokens, 0)
    weights = method.stages[0](tokens.x[:, 1:])
    assert slimmed.x.shape == (B, 1 + 3, C)
    assert torch.equal(slimmed.x[:, 0], tokens.x[:, 0])
    for b in range(B):
        for m in range(3):
            expected = sum(
                weights[b, m, n] * tokens.x[b, 1 + n] for n in range(N + 1)
            )
            assert torch.allclose(slimmed.x[b, 1 + m], expected)
    assert [type(r) for r in slimmed.trace] == [Appended, Kept]
    assert slimmed.num_cached == 0
    assert slimmed.num_pooled == 4


def test_sit_token_loss_equals_loop_if_recalibrated():
    method, tokens = toy(keep_rate=0.5, recalibrate=True)
    assert method.needs_teacher
    slimmed = method.before(tokens, 0)
    teacher = torch.randn(B, 7, C).double()
    y = slimmed.x[:, 1:]
    made = torch.zeros(B, 7, C).double()
    weights = method.reverse(y)
    for p in range(7):
        for m in range(3):
            made[:, p] += weights[:, p, m, None] * y[:, m]
    expected = ((made - teacher) ** 2).mean()
    assert torch.allclose(method.token_loss(slimmed, teacher), expected)


def test_sit_token_loss_uses_average_targets_by_default():
    method, tokens = toy(keep_rate=0.5)
    assert not method.needs_teacher
    assert not any('reverse' in name for name, _ in method.named_parameters())
    teacher = torch.randn(B, 7, C).double()
    slimmed = method.before(tokens, 0)
    mix = slimmed.trace[1].mix[:, :, 1:8]  # patches only
    mix = mix / mix.sum(-1, keepdim=True)
    expected = (slimmed.x[:, 1:] - mix @ teacher).square().mean()
    assert torch.allclose(method.token_loss(slimmed, teacher), expected)
