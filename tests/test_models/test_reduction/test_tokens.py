# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import (
    Appended,
    Kept,
    Masked,
    Merged,
    patch_weights,
)


def index(*rows):
    return torch.tensor(rows)


def slow_apply(record, tokens):
    """Apply a record to one image, a list with a tensor per token."""
    if isinstance(record, Appended):
        zero = torch.zeros_like(tokens[0])
        return [*tokens, *[zero for _ in range(record.num_tokens)]]
    if isinstance(record, Masked):
        return [
            d * token
            for d, token in zip(record.decision[0], tokens, strict=True)
        ]
    if isinstance(record, Merged):
        made = [torch.zeros_like(tokens[0]) for _ in range(record.num_tokens)]
        for old, token in enumerate(tokens):
            new = record.target[0, old]
            made[new] = made[new] + record.share[0, old] * token
        return made
    made = []
    if record.mix is not None:
        for weights in record.mix[0]:
            total = torch.zeros_like(tokens[0])
            for weight, token in zip(weights, tokens, strict=True):
                total = total + weight * token
            made.append(total)
    return [tokens[i] for i in record.index[0].tolist()] + made


def random_kept(num_tokens, num_kept, num_made):
    order = torch.randperm(num_tokens - 1)[: num_kept - 1] + 1
    kept = torch.cat((torch.zeros(1, dtype=torch.long), order))[None]
    if not num_made:
        return Kept(kept)
    return Kept(kept, torch.rand(1, num_made, num_tokens))


def random_merged(num_tokens, num_made):
    target = torch.randint(0, num_made, (1, num_tokens))
    weight = torch.rand(1, num_tokens)
    return Merged.average(target, weight, num_made, eps=1e-6)


def random_trace():
    """Return a random trace from CLS and 12 patches."""
    return [
        Appended(1),
        random_merged(14, 10).within(0, 0),
        random_merged(8, 6).within(1, 1),  # 10 tokens
        Masked(torch.tensor([[1.0, 1, 0, 1, 0, 1, 1, 1]])),
        Appended(6),
        random_kept(14, 8, 1),
        Appended(6),
        random_kept(15, 7, 0),
        Appended(3),
        random_kept(10, 3, 2),
        Appended(1),
    ]


def test_reduce_applies_to_features_and_weights():
    tokens = Tokens(
        torch.randn(1, 4, 3), weight=torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    )
    mix = torch.tensor([[[0.0, 0.5, 0.25, 0.0]]])
    reduced = tokens.reduce(Kept(index([0, 3]), mix))
    assert reduced.weight.tolist() == [[1.0, 4.0, 1.75]]
    fused = 0.5 * tokens.x[0, 1] + 0.25 * tokens.x[0, 2]
    assert torch.allclose(reduced.x[0, 2], fused)


def test_append_adds_cached_tokens_at_the_end():
    x, new = torch.randn(2, 3, 4), torch.randn(2, 2, 4)
    tokens = Tokens(x, weight=torch.full((2, 3), 5.0), num_cached=1)
    longer = tokens.append(new, weight=0.5)
    assert torch.equal(longer.x, torch.cat((x, new), dim=1))
    assert longer.weight.tolist() == [[5.0, 5.0, 5.0, 0.5, 0.5]] * 2
    assert longer.num_cached == 3
    assert Tokens(x).append(new).weight is None
    heavy = Tokens(x).append(new, weight=2.0)
    assert heavy.weight.tolist() == [[1, 1, 1, 2, 2]] * 2


def test_reduction_sets_pooled_and_cached_counts():
    tokens = Tokens(torch.randn(1, 5, 4), num_pooled=5)
    assert tokens.gather(index([0, 4])).num_pooled == 2
    mixed = tokens.reduce(Kept(index([0, 4]), torch.rand(1, 1, 5)))
    assert mixed.num_pooled == 3
    merged = Merged.average(index([0, 1, 1, 2, 2]), torch.ones(1, 5), 3)
    assert tokens.reduce(merged).num_pooled == 3
    assert tokens.append(torch.randn(1, 2, 4)).num_pooled == 5
    assert tokens.mask(torch.ones(1, 5)).num_pooled == 5
    longer = tokens.append(torch.randn(1, 2, 4))
    assert (longer.num_cached, longer.gather(index([0, 6])).num_cached) == (
        2,
        0,
    )


def test_mask_keeps_all_tokens():
    tokens = Tokens(torch.randn(1, 3, 4))
    decision = torch.tensor([[1.0, 0.0, 1.0]])
    masked = tokens.mask(decision)
    assert masked.x is tokens.x
    assert masked.weight is decision
    assert tokens.weight is None
    rows = masked.trace[0].apply(tokens.x)
    assert not rows[0, 1].any()
    assert torch.equal(rows[0, [0, 2]], tokens.x[0, [0, 2]])


def test_cache_is_detected_if_no_token_is_appended():
    tokens = Tokens(torch.randn(1, 3, 4))
    assert not tokens.gather(index([0, 1])).with_cache
    assert tokens.append(tokens.x[:, :0]).with_cache


def test_mix_body_equals_loop():
    x, mix = torch.randn(2, 4, 3), torch.rand(2, 2, 3)
    mixed = Tokens(x).mix_body(mix).x
    assert mixed.shape == (2, 3, 3)
    assert torch.equal(mixed[:, 0], x[:, 0])
    for b in range(2):
        for m in range(2):
            made = sum(mix[b, m, n] * x[b, 1 + n] for n in range(3))
            assert torch.allclose(mixed[b, 1 + m], made)


def test_merged_average_uses_weights():
    weight = torch.tensor([[1.0, 3.0, 5.0]])
    merged = Merged.average(index([1, 1, 0]), weight, 2)
    assert merged.share.tolist() == [[0.25, 0.75, 1]]
    made = merged.apply(torch.tensor([[[4.0], [8.0], [9.0]]]))
    assert made.tolist() == [[[9], [7]]]
    short = Merged.average(index([1, 1, 0]), weight, 2, eps=4.0)
    assert short.share[0].tolist() == pytest.approx([0.125, 0.375, 5 / 9])


def test_merged_within_keeps_surrounding_tokens():
    merged = Merged(index([1, 0, 1]), torch.tensor([[0.5, 1, 0.5]]), 2)
    around = merged.within(1, 2)
    assert around.target.tolist() == [[0, 2, 1, 2, 3, 4]]
    assert around.share.tolist() == [[1, 0.5, 1, 0.5, 1, 1]]
    assert around.num_tokens == 5
    x = torch.arange(6.0).reshape(1, 6, 1)
    assert around.apply(x).flatten().tolist() == [0, 2, 2, 4, 5]


def test_methods_leave_the_original_tokens():
    x = torch.randn(1, 3, 4)
    tokens = Tokens(x)
    tokens.gather(index([0, 2])).append(x)
    tokens.with_x(2 * x)
    assert tokens.x is x
    assert tokens.trace == []
    assert tokens.num_cached == 0


def test_patch_weights_are_identity_if_trace_is_empty():
    weights = patch_weights([], batch_size=2, num_patches=3)
    one = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert weights.tolist() == [one, one]
    no_cls = patch_weights([], 1, num_patches=3, num_prefix=0)
    assert no_cls.tolist() == [one[1:]]


@pytest.mark.parametrize('seed', range(5))
def test_patch_weights_equal_loop_over_stages(seed):
    torch.manual_seed(seed)
    trace = random_trace()
    tokens = [torch.zeros(12), *torch.eye(12)]
    for steps, record in enumerate(trace, start=1):
        tokens = slow_apply(record, tokens)
        weights = patch_weights(trace[:steps], 1, 12)
        assert weights.dtype == torch.float32
        assert torch.allclose(weights[0], torch.stack(tokens), atol=1e-7)


def test_average_and_deviation_ignore_zero_weights():
    x = torch.tensor([[[9.0], [1.0], [2.0], [6.0]]])
    assert Tokens(x).average(1).item() == 3
    assert Tokens(x).average(0, 2).item() == 5
    masked = Tokens(x, weight=torch.tensor([[1.0, 1.0, 0.0, 3.0]]))
    assert masked.average(1).item() == 3.5
    assert masked.average(1, 3).item() == 1
    assert masked.average(2, 3).item() == 0  # no token
    assert masked.deviation(1).item() == 2.5
    assert masked.deviation(3).item() < 1e-3  # one token


def test_unchanged_stage_is_in_the_trace():
    tokens = Tokens(torch.randn(2, 5, 3), num_cached=1, num_patches=4)
    same = tokens.unchanged()
    assert same.x is tokens.x and same.num_cached == 1
    assert not tokens.trace
    weights = patch_weights(same.trace, 2, 4)
    assert torch.equal(weights, patch_weights([], 2, 4))
