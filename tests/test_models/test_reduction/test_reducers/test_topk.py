# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import math

import pytest
import torch
from small_models import CACHE, REDUCE_AT, build, images, token_counts, vit

from mmclca.models import EViT, TopK
from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.reducers.evit import fuse_weights
from mmclca.models.reduction.reducers.topk import protect, top_tokens
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept, Unchanged
from mmclca.registry import MODELS


def slow_top_tokens(scores, keep_rate):
    """Select the best tokens for one image one by one."""
    left = dict(enumerate(scores, start=1))
    index = [0]
    while len(index) <= math.ceil(keep_rate * len(scores)) and left:
        index.append(max(left, key=left.get))
        del left[index[-1]]
    return index


@pytest.mark.parametrize('keep_rate', [1, 0.97, 0.7, 0.5, 0.25, 0.1, 1e-3])
@pytest.mark.parametrize('num_tokens', [1, 2, 4, 10, 31])
def test_top_tokens_are_sorted_by_score(num_tokens, keep_rate):
    score = torch.rand(3, num_tokens)
    expected = [slow_top_tokens(row, keep_rate) for row in score.tolist()]
    num_kept = math.ceil(keep_rate * num_tokens)
    assert top_tokens(score, num_kept).tolist() == expected


def test_topk_score_is_mean_cls_attention():
    q, k, v = torch.randn(3, 2, 4, 7, 5).unbind(0)
    tokens = Tokens(torch.randn(2, 7, 20))
    reducer = TopK(keep_rate=(1, 0.5), num_stages=2)
    reduced = reducer.between(tokens, Attended(q, k, v), stage=1)
    for b in range(2):
        score = torch.zeros(7)
        for h in range(4):
            logits = torch.stack([q[b, h, 0] @ k[b, h, j] for j in range(7)])
            score += (logits / 5**0.5).softmax(0) / 4
        kept = slow_top_tokens(score[1:].tolist(), 0.5)
        assert len(kept) == 4
        assert torch.equal(reduced.x[b], tokens.x[b, kept])
    assert [type(record) for record in reduced.trace] == [Kept]


@pytest.mark.parametrize('kind', [TopK, EViT])
@pytest.mark.parametrize('keep_rate', [1, 0.97])
def test_topk_is_unchanged_if_all_tokens_are_kept(keep_rate, kind):
    q, k, v = torch.randn(3, 1, 1, 5, 2).unbind(0)
    tokens = Tokens(torch.randn(1, 5, 2))
    reducer = kind(keep_rate, num_stages=1)
    same = reducer.between(tokens, Attended(q, k, v), 0)
    assert same.x is tokens.x
    assert [type(record) for record in same.trace] == [Unchanged]


@pytest.mark.parametrize(
    'reducer', ['mmclca.TopK', 'mmclca.EViT', 'mmclca.ToMe']
)
@pytest.mark.parametrize('train', [True, False])
def test_reducer_equals_plain_model_if_keep_rate_is_one(reducer, train):
    options = dict(drop_rate=0.1, drop_path_rate=0.1, cache=CACHE)
    plain = build(vit(reduce_at=REDUCE_AT, **options)).train(train)
    config = vit(
        reducer=dict(type=reducer, keep_rate=1), reduce_at=REDUCE_AT, **options
    )
    reduced = MODELS.build(config).train(train)
    reduced.load_state_dict(plain.state_dict())
    x = images()
    outs = []
    for model in (plain, reduced):
        torch.manual_seed(1)
        out = model(x)[0]
        out.square().sum().backward()
        outs.append(out)
    assert torch.equal(*outs)
    for one, other in zip(
        plain.parameters(), reduced.parameters(), strict=True
    ):
        assert torch.equal(one.grad, other.grad)


@pytest.mark.parametrize('reducer', ['mmclca.TopK', 'mmclca.EViT'])
def test_protected_clr_tokens_replace_lowest_scores(reducer):
    counts, kept = [], []
    for wanted in (False, True):
        config = vit(
            reducer=dict(type=reducer, keep_rate=0.25),
            reduce_at=REDUCE_AT,
            cache=dict(CACHE, num_tokens=2, protect_clr=wanted),
        )
        torch.manual_seed(1)
        model = build(config)
        counts.append(token_counts(model, images()))
        _, tokens = model.forward_tokens(images())
        lengths = [counts[-1][layer][0] for layer in REDUCE_AT]
        stages = [r for r in tokens.trace if isinstance(r, Kept)]
        for length, record in zip(lengths, stages, strict=True):
            clr = torch.tensor([length - 2, length - 1])
            kept.append(torch.isin(clr, record.index).all().item())
    assert counts[0] == counts[1]  # equal token counts and cost
    assert not all(kept[:3]) and kept[3:] == [True] * 3


def test_protect_raises_only_the_last_scores():
    score = torch.tensor([[0.4, 0.3, 0.2, 0.1]])
    assert protect(score, 0) is score
    assert top_tokens(protect(score, 1), 2).tolist() == [[0, 4, 1]]


def slow_fuse_weights(scores, kept):
    """Return the scores for dropped tokens, 0 for kept tokens."""
    return [
        0.0 if token in kept else scores[token - 1]
        for token in range(len(scores) + 1)
    ]


@pytest.mark.parametrize('keep_rate', [0.7, 0.5, 0.25, 0.1])
@pytest.mark.parametrize('num_tokens', [1, 2, 4, 10, 31])
def test_fuse_weights_equal_scores_of_dropped_tokens(num_tokens, keep_rate):
    score = torch.rand(3, num_tokens)
    index = top_tokens(score, math.ceil(keep_rate * num_tokens))
    weights = fuse_weights(score, index)
    assert weights.shape == (3, 1, num_tokens + 1)
    for row, scores, kept in zip(
        weights[:, 0].tolist(), score.tolist(), index.tolist(), strict=True
    ):
        assert row == slow_fuse_weights(scores, kept)


def test_evit_orders_cls_kept_fused():
    x = torch.randn(1, 6, 3)
    score = torch.tensor([[0.10, 0.30, 0.05, 0.20, 0.15]])  # CLS has 0.2
    q = torch.ones(1, 1, 6, 1)
    k = torch.cat((torch.tensor([[0.2]]), score), 1).log()[:, None, :, None]
    tokens = EViT(0.4, num_stages=1).between(Tokens(x), Attended(q, k, q), 0)
    # weights sum to 0.3
    fused = 0.10 * x[0, 1] + 0.05 * x[0, 3] + 0.15 * x[0, 5]
    expected = torch.stack([x[0, 0], x[0, 2], x[0, 4], fused])
    assert torch.allclose(tokens.x[0], expected, atol=1e-6)


def test_evit_averages_dropped_tokens_if_normalized():
    q, k, v = torch.randn(3, 2, 2, 8, 4).unbind(0)
    x = torch.randn(2, 8, 3)
    made = []
    for normalize in (False, True):
        reducer = EViT(0.5, normalize=normalize, num_stages=1)
        made.append(reducer.between(Tokens(x), Attended(q, k, v), 0))
    plain, averaged = made
    total = plain.trace[0].mix.sum(dim=-1)  # (B, 1)
    assert (total < 0.99).all()
    assert torch.allclose(averaged.x[:, -1], plain.x[:, -1] / total)
    assert torch.equal(averaged.x[:, :-1], plain.x[:, :-1])


def test_fused_token_has_gradients_of_features_and_scores():
    q, k, v = torch.randn(3, 2, 2, 8, 4).unbind(0)
    for leaf in (q, k):
        leaf.requires_grad_()
    x = torch.randn(2, 8, 3, requires_grad=True)
    reducer = EViT(0.5, num_stages=1)
    tokens = reducer.between(Tokens(x), Attended(q, k, v), 0)
    tokens.x[:, -1].square().sum().backward()
    dropped = (x.grad != 0).any(-1).sum(dim=1)
    assert dropped.tolist() == [3, 3]
    assert q.grad[:, :, 0].any()
    assert not q.grad[:, :, 1:].any()
    assert k.grad.any()
