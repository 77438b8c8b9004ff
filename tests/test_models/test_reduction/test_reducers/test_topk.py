# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import pytest
import torch
from small_models import CACHE, REDUCE_AT, build, images, token_counts, vit
from toy_reducers import shape

from mmclca.models.reduction.attention import Attended
from mmclca.models.reduction.reducers import EViT, TopK
from mmclca.models.reduction.reducers.topk import protect, top_tokens
from mmclca.models.reduction.tokens import Tokens
from mmclca.models.reduction.trace import Kept, Unchanged
from mmclca.registry import MODELS


@pytest.mark.parametrize('kind', [TopK, EViT])
@pytest.mark.parametrize('keep_rate', [1, 0.97])
def test_topk_is_unchanged_if_all_tokens_are_kept(keep_rate, kind):
    q, k, v = torch.randn(3, 1, 1, 5, 2).unbind(0)
    tokens = Tokens(torch.randn(1, 5, 2))
    reducer = kind(keep_rate, backbone=shape(num_stages=1))
    same = reducer.after_attention(tokens, Attended(q, k, v), 0)
    assert same.features is tokens.features
    assert [type(record) for record in same.trace] == [Unchanged]


@pytest.mark.parametrize(
    'reducer', ['mmclca.TopK', 'mmclca.EViT', 'mmclca.ToMe']
)
def test_reducer_equals_plain_model_if_keep_rate_is_one(reducer):
    options = dict(drop_rate=0.1, drop_path_rate=0.1, cache=CACHE)
    plain = build(vit(reduce_at=REDUCE_AT, **options)).train()
    config = vit(
        reducer=dict(type=reducer, keep_rate=1), reduce_at=REDUCE_AT, **options
    )
    reduced = MODELS.build(config).train()
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


def test_evit_averages_dropped_tokens_if_normalized():
    q, k, v = torch.randn(3, 2, 2, 8, 4).unbind(0)
    x = torch.randn(2, 8, 3)
    made = []
    for normalize in (False, True):
        reducer = EViT(0.5, normalize=normalize, backbone=shape(num_stages=1))
        made.append(reducer.after_attention(Tokens(x), Attended(q, k, v), 0))
    plain, averaged = made
    total = plain.trace[0].mix.sum(dim=-1)  # (B, 1)
    assert (total < 0.99).all()
    assert torch.allclose(
        averaged.features[:, -1], plain.features[:, -1] / total
    )
    assert torch.equal(averaged.features[:, :-1], plain.features[:, :-1])
