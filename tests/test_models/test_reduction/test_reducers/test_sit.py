# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from torch.nn.functional import gelu, layer_norm

from mmclca.models import SiT
from mmclca.models.reduction.reducers.sit import Slimming
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Appended, Kept

B, N, C, M = 2, 7, 8, 3


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
