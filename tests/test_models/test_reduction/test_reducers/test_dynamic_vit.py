# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import CACHE, REDUCE_AT, build, images, token_counts, vit
from torch.nn.functional import gelu, layer_norm

from mmclca.models import DynamicViT
from mmclca.models.reduction.attention import masked_softmax
from mmclca.models.reduction.reducers.dynamic_vit import Predictor, sample_kept
from mmclca.models.reduction.tokens import Tokens, initial_tokens
from mmclca.models.reduction.trace import Appended, Kept, Masked

B, N, C = 2, 6, 8


def random_counts():
    return torch.tensor([[1, 0, 1, 1, 0, 1], [1, 1, 0, 1, 1, 1]]).double()


def slow_predict(predictor, y, counts):
    """Compute log-probabilities for one image by a loop."""
    norm, linear, _ = predictor.in_conv
    first, _, second, _, third, _ = predictor.out_conv
    seen = [
        gelu(linear(layer_norm(row, (C,), norm.weight, norm.bias)))
        for row in y
    ]
    half = C // 2
    kept = [
        row[half:] for row, count in zip(seen, counts, strict=True) if count
    ]
    average = sum(kept) / len(kept) + 1e-6
    scores = []
    for row in seen:
        row = torch.cat((row[:half], average))
        scores.append(third(gelu(second(gelu(first(row))))).log_softmax(0))
    return torch.stack(scores)


def test_predictor_equals_loop():
    predictor = Predictor(C).double()
    for parameter in predictor.parameters():
        torch.nn.init.normal_(parameter)
    y, counts = torch.randn(B, N, C).double(), random_counts()
    scores = predictor(y, counts)
    for b in range(B):
        expected = slow_predict(predictor, y[b], counts[b])
        assert torch.allclose(scores[b], expected)


def test_predictor_is_finite_if_all_tokens_are_dropped():
    scores = Predictor(C)(torch.randn(1, N, C), torch.zeros(1, N))
    assert scores.isfinite().all()


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_masked_softmax_equals_loop(dtype):
    logits = 5 * torch.randn(B, 2, N, N, dtype=dtype)
    decision = random_counts().to(dtype)
    weights = masked_softmax(logits, decision)
    for b in range(B):
        for i in range(N):
            row = logits[b, 1, i].double()
            parts = (row - row.max()).exp()
            for j in range(N):
                if j != i and not decision[b, j]:
                    parts[j] = 0
            expected = (parts + 1e-6 / N) / (parts.sum() + 1e-6)
            assert torch.allclose(weights[b, 1, i].double(), expected)


def test_masked_softmax_equals_softmax_if_all_tokens_are_kept():
    logits = 100 * torch.randn(B, 2, N, N)
    weights = masked_softmax(logits, torch.ones(1, N))
    assert torch.allclose(weights, logits.softmax(-1), atol=1e-5)
    half = masked_softmax(logits.bfloat16(), torch.ones(1, N).bfloat16())
    assert half.dtype == torch.bfloat16


def test_masked_softmax_has_gradients_of_decision():
    decision = random_counts().requires_grad_()
    logits = torch.randn(B, 2, N, N).double()
    masked_softmax(logits, decision)[:, :, 0, 1].sum().backward()
    assert (decision.grad[:, 1:] != 0).all()  # CLS always attends to itself


def test_sample_kept_excludes_dropped_tokens():
    counts = random_counts()
    scores = torch.randn(B, N, 2).double().log_softmax(-1)
    total = torch.zeros(B, N)
    for _ in range(2000):
        drawn = sample_kept(scores, counts)
        assert (drawn[:, 0] == 1).all()
        assert set(drawn.unique().tolist()) <= {0, 1}
        total += drawn[:, 1:]
    expected = scores[..., 0].exp() * counts
    assert torch.allclose(total / 2000, expected.float(), atol=0.05)


def reducer(**options):
    options = {'num_stages': 3, 'num_patches': 16, **options}
    return DynamicViT(embed_dims=C, **options)


@pytest.mark.parametrize('keep_rate', [0.5, (0.7, 0.5, 0.1)])
def test_ratio_loss_equals_loop(keep_rate):
    method = reducer(keep_rate=keep_rate)
    decisions = [torch.randint(0, 2, (B, n)).double() for n in (17, 17, 20)]
    trace = [Masked(d) for d in decisions]
    tokens = Tokens(torch.zeros(B, 20, C), trace=trace)
    total, rates = 0.0, method.keep_rates
    for s, decision in enumerate(decisions):
        goal = torch.tensor(rates[: s + 1]).prod()
        for b in range(B):
            total += (decision[b, 1:].mean() - goal) ** 2 / (3 * B)
    assert method.loss(tokens).keys() == {'loss_ratio'}
    assert torch.allclose(method.loss(tokens)['loss_ratio'], 2 * total)
    heavy = reducer(keep_rate=keep_rate, loss_weight=5.0)
    assert torch.allclose(heavy.loss(tokens)['loss_ratio'], 5 * total)


def test_ratio_loss_is_zero_if_num_tokens_are_met():
    method = reducer(num_tokens=(8, 4, 2))
    decisions = [torch.zeros(1, 17) for _ in range(3)]
    for decision, kept in zip(decisions, (8, 4, 2), strict=True):
        decision[:, : 1 + kept] = 1
    trace = [Masked(decision) for decision in decisions]
    assert method.loss(Tokens(decisions[0], trace=trace))['loss_ratio'] == 0


def test_ratio_loss_is_empty_in_evaluation():
    trace = [Kept(torch.zeros(1, 2).long())]
    assert reducer().loss(Tokens(torch.zeros(1, 2, C), trace=trace)) == {}


def test_dynamic_vit_masks_without_removal_in_training():
    method = reducer(keep_rate=0.5).train()
    tokens = Tokens(torch.randn(B, 17, C), num_patches=16)
    first = method.before(tokens, 0)
    second = method.before(first, 1)
    assert first.x is tokens.x
    assert [type(r) for r in second.trace] == [Masked, Masked]
    assert torch.equal(second.weight, second.trace[1].decision)
    assert (first.weight >= second.weight).all()
    assert (second.weight[:, 0] == 1).all()
    assert 0 < first.weight[:, 1:].mean() < 1


def test_dynamic_vit_keeps_best_tokens_in_evaluation():
    method = build(
        dict(
            type='mmclca.DynamicViT',
            keep_rate=0.5,
            embed_dims=C,
            num_patches=16,
        )
    ).eval()
    tokens = Tokens(torch.randn(B, 17, C), num_patches=16)
    kept = method.before(tokens, 0)
    score = method.stages[0](tokens.x[:, 1:], torch.ones(B, 16))[..., 0]
    for b in range(B):
        ranks = sorted(range(16), key=lambda i, b=b: -score[b, i])
        index = [0, *(i + 1 for i in ranks[:8])]
        assert torch.equal(kept.x[b], tokens.x[b, index])
    assert kept.weight is None


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
    assert [type(r) for r in tokens.trace[:2]] == [Appended, Kept]


def test_dynamic_vit_num_tokens_hold_with_cache():
    reducer = dict(type='mmclca.DynamicViT', num_tokens=(9, 5, 2))
    for cache in (None, CACHE):
        config = vit(reducer=reducer, reduce_at=REDUCE_AT, cache=cache)
        with torch.no_grad():
            counts = token_counts(build(config).eval(), images())
        assert [counts[i][1] for i in REDUCE_AT] == [10, 6, 3]


def test_masked_token_does_not_affect_others():
    config = vit(reducer=dict(type='mmclca.DynamicViT'), reduce_at=(1, 2))
    model = build({**config, 'arch': {**config['arch'], 'num_layers': 3}})
    model.double().train()
    x = torch.randn(1, 17, 16).double()
    decision = torch.ones(1, 17).double()
    decision[:, 5] = 0
    other = x.clone()
    other[:, 5] += 1
    outs = [
        model.run_layer(model.layers[0], Tokens(rows).mask(decision), None).x
        for rows in (x, other)
    ]
    moved = (outs[0] - outs[1]).abs().amax(dim=(0, 2))
    assert moved[5] > 0.1
    moved[5] = 0
    assert moved.max() < 1e-5  # epsilon of the softmax


def test_predictor_ignores_recovered_tokens_in_evaluation():
    method = reducer(keep_rate=0.5).double().eval()
    seen = []
    method.stages[0].register_forward_hook(
        lambda _, inputs, scores: seen.append(inputs[1].tolist())
    )
    x = torch.randn(1, 17, C).double()
    tokens = Tokens(x, num_patches=16).append(x[:, :1])
    tokens = tokens.gather(torch.tensor([[0, 3, 17]])).append(x[:, :2])
    method.before(tokens, 0)
    assert seen == [[[1, 1, 0, 0]]]


def test_dynamic_vit_keeps_first_tokens_if_all_are_recovered():
    method = build(
        dict(type='mmclca.DynamicViT', embed_dims=C, num_patches=16)
    ).eval()
    tokens = Tokens(torch.randn(1, 17, C), num_patches=16)
    tokens = tokens.append(tokens.x[:, :0]).gather(torch.tensor([[0]]))
    tokens = tokens.append(torch.randn(1, 6, C))
    kept = method.before(tokens, 0)
    assert kept.trace[-1].index.tolist() == [[0, 1, 2, 3, 4, 5]]


def test_dynamic_vit_softmax_is_fused_in_evaluation():
    tokens = Tokens(torch.randn(1, 17, C), num_patches=16)
    assert reducer().eval().softmax(tokens) is None
    logits = torch.randn(1, 2, 17, 17)
    weights = reducer().train().softmax(tokens)(logits)
    assert torch.allclose(weights, logits.softmax(-1), atol=1e-5)
