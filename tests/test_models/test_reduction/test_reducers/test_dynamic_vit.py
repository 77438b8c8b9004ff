# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from small_models import CACHE, REDUCE_AT, build, images, token_counts, vit
from toy_reducers import shape

from mmclca.models.reduction.attention import masked_softmax
from mmclca.models.reduction.reducers import DynamicViT
from mmclca.models.reduction.reducers.dynamic_vit import Predictor, sample_kept
from mmclca.models.reduction.tokens import Tokens, initial_tokens
from mmclca.models.reduction.trace import Kept, Masked

B, N, C = 2, 6, 8


def random_counts():
    return torch.tensor([[1, 0, 1, 1, 0, 1], [1, 1, 0, 1, 1, 1]]).double()


def test_predictor_is_finite_if_all_tokens_are_dropped():
    scores = Predictor(C)(torch.randn(1, N, C), torch.zeros(1, N))
    assert scores.isfinite().all()


def test_masked_softmax_equals_loop():
    logits = 30 * torch.randn(B, N, N).double()  # of one head
    decision = random_counts()
    weights = masked_softmax(logits[:, None], decision)[:, 0]
    for b in range(B):
        for i in range(N):
            allowed = decision[b].clone()
            allowed[i] = 1
            row = logits[b, i]
            parts = (row - row.max()).exp() * allowed
            expected = (parts + 1e-6 / N) / (parts.sum() + 1e-6)
            assert torch.allclose(weights[b, i], expected)
    half = masked_softmax(logits[:, None].bfloat16(), decision.bfloat16())
    assert half.dtype == torch.bfloat16


def test_masked_softmax_has_gradients_of_decision():
    decision = random_counts().requires_grad_()
    logits = torch.randn(B, 2, N, N).double()
    masked_softmax(logits, decision)[:, :, 0, 1].sum().backward()
    assert (decision.grad[:, 1:] != 0).all()  # CLS always attends to itself


def test_sample_kept_excludes_dropped_tokens():
    counts = random_counts()
    scores = torch.randn(B, N, 2).double().log_softmax(-1)
    drawn = torch.stack([sample_kept(scores, counts) for _ in range(400)])
    assert (drawn[:, :, 0] == 1).all()
    assert set(drawn.unique().tolist()) <= {0, 1}
    expected = scores[..., 0].exp() * counts
    assert torch.allclose(drawn[:, :, 1:].mean(dim=0), expected, atol=0.1)


def reducer(**options):
    backbone = shape(embed_dims=C, num_patches=16)
    return DynamicViT(backbone=backbone, **options)


def test_ratio_loss_equals_loop():
    method = reducer(keep_rate=(0.7, 0.5, 0.1), loss_weight=5.0)
    decisions = [torch.randint(0, 2, (B, n)).double() for n in (17, 17, 20)]
    tokens = Tokens(torch.zeros(B, 20, C), trace=[*map(Masked, decisions)])
    total = 0.0
    for goal, decision in zip((0.7, 0.35, 0.035), decisions, strict=True):
        for b in range(B):
            total += (decision[b, 1:].mean() - goal) ** 2 / (3 * B)
    losses = method.loss(tokens)
    assert losses.keys() == {'loss_ratio'}
    assert torch.allclose(losses['loss_ratio'], 5 * total)


def test_ratio_loss_is_zero_or_missing_if_num_tokens_are_met():
    method = reducer(num_tokens=(8, 4, 2))
    decisions = [torch.zeros(1, 17) for _ in range(3)]
    for decision, kept in zip(decisions, (8, 4, 2), strict=True):
        decision[:, : 1 + kept] = 1
    trace = [Masked(decision) for decision in decisions]
    assert method.loss(Tokens(decisions[0], trace=trace))['loss_ratio'] == 0
    trace = [Kept(torch.zeros(1, 2).long())]  # in evaluation
    assert method.loss(Tokens(torch.zeros(1, 2, C), trace=trace)) == {}


def test_dynamic_vit_masks_without_removal_in_training():
    method = reducer(keep_rate=0.5).train()
    tokens = Tokens(torch.randn(B, 17, C), num_patches=16)
    first = method.before_layer(tokens, 0)
    second = method.before_layer(first, 1)
    assert first.features is tokens.features
    assert torch.equal(second.weight, second.trace[1].decision)
    assert (first.weight >= second.weight).all()
    assert (second.weight[:, 0] == 1).all()
    assert 0 < first.weight[:, 1:].mean() < 1


def test_initial_tokens_exclude_recovered_tokens():
    x = torch.randn(B, 5, C)  # CLS and 4 patches
    tokens = Tokens(x, num_patches=4)
    assert initial_tokens(tokens).tolist() == [[1] * 4] * B
    tokens = tokens.append(x[:, :1])  # a CLR token
    assert initial_tokens(tokens).tolist() == [[1] * 5] * B
    index = torch.tensor([[0, 5, 2], [0, 1, 4]])
    tokens = tokens.gather(index).append(x[:, :2])
    assert initial_tokens(tokens).tolist() == [[1, 1, 0, 0]] * B
    index = torch.tensor([[0, 3, 1], [0, 1, 2]])
    tokens = tokens.gather(index).append(x[:, :1])
    assert initial_tokens(tokens).tolist() == [[0, 1, 0], [1, 1, 0]]


def test_dynamic_vit_num_tokens_hold_with_cache():
    reducer = dict(type='mmclca.DynamicViT', num_tokens=(9, 5, 2))
    for cache in (None, CACHE):
        config = vit(reducer=reducer, reduce_at=REDUCE_AT, cache=cache)
        with torch.no_grad():
            counts = token_counts(build(config).eval(), images())
        assert [counts[i][1] for i in REDUCE_AT] == [10, 6, 3]


def test_dynamic_vit_keeps_first_tokens_if_all_are_recovered():
    method = build(
        dict(
            type='mmclca.DynamicViT',
            backbone=shape(embed_dims=C, num_patches=16),
        )
    ).eval()
    tokens = Tokens(torch.randn(1, 17, C), num_patches=16)
    tokens = tokens.append(tokens.features[:, :0]).gather(torch.tensor([[0]]))
    tokens = tokens.append(torch.randn(1, 6, C))
    kept = method.before_layer(tokens, 0)
    assert kept.trace[-1].index.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_dynamic_vit_softmax_is_fused_in_evaluation():
    tokens = Tokens(torch.randn(1, 17, C), num_patches=16)
    assert reducer().eval().softmax(tokens) is None
    logits = torch.randn(1, 2, 17, 17)
    weights = reducer().train().softmax(tokens)(logits)
    assert torch.allclose(weights, logits.softmax(-1), atol=1e-5)
