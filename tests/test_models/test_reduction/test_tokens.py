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
        return [*tokens, *[0 * tokens[0]] * record.num_tokens]
    if isinstance(record, Masked):
        decisions = zip(record.decision[0], tokens, strict=True)
        return [decision * token for decision, token in decisions]
    if isinstance(record, Merged):
        made = [0 * tokens[0] for _ in range(record.num_tokens)]
        for old, token in enumerate(tokens):
            made[record.target[0, old]] += record.share[0, old] * token
        return made
    made = [
        sum(weight * token for weight, token in zip(row, tokens, strict=True))
        for row in ([] if record.mix is None else record.mix[0])
    ]
    return [tokens[i] for i in record.index[0].tolist()] + made


def test_replace_keeps_all_other_attributes():
    tokens = Tokens(
        torch.ones(1, 4, 2),
        num_prefix=2,
        weight=torch.ones(1, 4),
        num_cached=3,
        num_protected=4,
        num_pooled=5,
        num_patches=6,
        trace=[Kept(index([0]))],
    )
    changed = vars(tokens.replace(num_pooled=7))
    assert {
        name: 7 if name == 'num_pooled' else value
        for name, value in vars(tokens).items()
    } == changed


def random_kept(num_tokens, num_kept, num_made):
    index = torch.randperm(num_tokens)[None, :num_kept]
    mix = torch.rand(1, num_made, num_tokens)
    return Kept(index, mix if num_made else None)


def random_merged(num_tokens, num_made):
    target = torch.randint(0, num_made, (1, num_tokens))
    weight = torch.rand(1, num_tokens)
    return Merged.average(target, weight, num_made, eps=1e-6)


def test_patch_weights_equal_loop_over_records():
    trace = [
        Appended(1),
        random_merged(14, 10),
        random_merged(8, 6).within(1, 1),
        Masked(index([1, 1, 0, 1, 0, 1, 1, 1])),
        Appended(6),
        random_kept(14, 8, 1),
        random_kept(9, 7, 0),
        Appended(3),
        random_kept(10, 3, 2),
    ]
    tokens = [torch.zeros(12), *torch.eye(12)]
    for steps, record in enumerate(trace, start=1):
        tokens = slow_apply(record, tokens)
        weights = patch_weights(trace[:steps], 1, 12)
        assert weights.dtype == torch.float32
        assert torch.allclose(weights[0], torch.stack(tokens), atol=1e-7)


def test_patch_weights_are_identity_if_trace_is_empty():
    one = [[0.0] * 3, *torch.eye(3).tolist()]
    assert patch_weights([], 2, num_patches=3).tolist() == [one, one]
    no_cls = patch_weights([], 1, num_patches=3, num_prefix=0)
    assert no_cls.tolist() == [one[1:]]


def test_reduce_applies_to_features_and_weights():
    tokens = Tokens(
        torch.randn(1, 4, 3), weight=torch.tensor([[1.0, 2.0, 3.0, 4.0]])
    )
    mix = torch.tensor([[[0.0, 0.5, 0.25, 0.0]]])
    reduced = tokens.reduce(Kept(index([0, 3]), mix))
    assert reduced.weight.tolist() == [[1.0, 4.0, 1.75]]
    fused = 0.5 * tokens.features[0, 1] + 0.25 * tokens.features[0, 2]
    assert torch.allclose(reduced.features[0, 2], fused)


def test_append_adds_cached_tokens_at_the_end():
    x, new = torch.randn(2, 3, 4), torch.randn(2, 2, 4)
    tokens = Tokens(x, weight=torch.full((2, 3), 5.0), num_cached=1)
    longer = tokens.append(new, weight=0.5)
    assert torch.equal(longer.features, torch.cat((x, new), dim=1))
    assert longer.weight.tolist() == [[5.0, 5.0, 5.0, 0.5, 0.5]] * 2
    assert longer.num_cached == 3
    assert Tokens(x).append(new).weight is None
    heavy = Tokens(x).append(new, weight=2.0)
    assert heavy.weight.tolist() == [[1, 1, 1, 2, 2]] * 2


def test_reduction_sets_pooled_and_cached_counts():
    tokens = Tokens(torch.randn(1, 5, 4), num_pooled=5)
    assert tokens.gather(index([0, 4])).num_pooled == 2
    assert tokens.mask(torch.ones(1, 5)).num_pooled == 5
    longer = tokens.append(torch.randn(1, 2, 4))
    assert (longer.num_pooled, longer.num_cached) == (5, 2)
    assert longer.gather(index([0, 6])).num_cached == 0


def test_cache_is_detected_if_no_token_is_appended():
    tokens = Tokens(torch.randn(1, 3, 4))
    assert not tokens.gather(index([0, 1])).with_cache
    assert tokens.append(tokens.features[:, :0]).with_cache
    assert not tokens.append(tokens.features, cached=False).with_cache


def test_mix_body_equals_loop():
    x, mix = torch.randn(2, 4, 3), torch.rand(2, 2, 3)
    mixed = Tokens(x).mix_after_prefix(mix).features
    assert torch.equal(mixed[:, 0], x[:, 0])
    assert torch.allclose(mixed[:, 1:], mix @ x[:, 1:])


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


def test_average_counts_all_tokens_after_a_merge():
    """As precisely as if each weight were compared with 0."""
    x = torch.randn(2, 9, 4)
    tokens = Tokens(x).merge(index(*[[0, 1, 1, 2, 3, 2, 4, 5, 5]] * 2), 6)
    assert tokens.all_count
    counted = tokens.replace(weight=tokens.weight)
    assert not counted.all_count
    for start in (0, 1):
        assert torch.equal(tokens.average(start), counted.average(start))
        assert torch.equal(tokens.deviation(start), counted.deviation(start))
    assert tokens.append(x[:, :2]).all_count
    padded = tokens.append(x[:, :2], weight=0.0)
    assert not padded.all_count
    assert torch.equal(padded.average(1), tokens.average(1))


def test_unchanged_stage_is_in_the_trace():
    tokens = Tokens(torch.randn(2, 5, 3), num_cached=1, num_patches=4)
    same = tokens.unchanged()
    assert same.features is tokens.features and same.num_cached == 1
    assert len(same.trace) == 1 and not tokens.trace
    assert torch.equal(same.patch_weights, tokens.patch_weights)
