# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import torch
from pairwise import each_pair

from mmclca.models import CrossLayerCache
from mmclca.models.reduction.tokens import Tokens

B, P, C = 2, 9, 4


def layer(i, x):
    """Mock layer ``i``: change all tokens and mix CLS into them."""
    return torch.tanh(x * (1 + 0.1 * i) + 0.3 * x[:, :1].roll(1, -1) + 0.01)


def kept(x):
    """Mock reduction: keep CLS and every other token, last one first."""
    order = [0, *range(x.size(1) - 1, 0, -2)]
    return torch.tensor(order).expand(x.size(0), -1)


def run(cache, x, depth, reduce_at):
    """Return the sequence after each layer, with the tested cache."""
    tokens, cached, after = cache.start(Tokens(x)), [], []
    for i in range(depth):
        tokens = tokens.with_features(layer(i, tokens.features))
        if i in reduce_at:
            tokens = tokens.gather(kept(tokens.features))
        tokens = cache(i, tokens, cached)
        after.append(tokens.features)
    assert cached == []  # all entries are recovered
    return after


def slow_run(cache, x, depth, reduce_at, last):
    """Apply the paper's rule by loops."""
    n = cache.num_tokens
    recover = sorted({*reduce_at, depth - 2} if last else reduce_at)
    if n:
        clr = (cache.clr + cache.clr_pos).repeat(len(x), 1, 1)
        x = torch.cat((x, clr), dim=1)
    pool_end = x.size(1) if cache.pool_clr else x.size(1) - n
    store, after = [], []
    for i in range(depth):
        x = layer(i, x)
        if i in reduce_at:
            x = torch.stack(
                [img[k] for img, k in zip(x, kept(x), strict=True)]
            )
        if i in recover:
            pool_end = x.size(1)
            for entry in store:  # chronological
                for token in entry:
                    x = torch.cat((x, token[:, None]), dim=1)
            store = []
        if i < recover[-1]:
            entry = []
            if cache.with_gap:
                total, count = 0, 0
                for j in range(0 if cache.pool_cls else 1, pool_end):
                    total, count = total + x[:, j], count + 1
                entry.append(total / count)
            for j in range(x.size(1) - n, x.size(1)):
                entry.append(x[:, j])
            store.append(entry)
        after.append(x)
    return after


PLACES = (  # depth, reduce_at
    *((12, (3, 6, 9)), (12, (0,)), (12, (10,)), (12, (11,))),
    *((12, (5, 10, 11)), (6, (1, 2, 3, 4, 5)), (2, (0, 1)), (1, (0,))),
)


@each_pair(
    place=PLACES,
    entry=((0, True), (1, True), (2, True), (1, False), (2, False)),
    pool_cls=(False, True),
    pool_clr=(False, True),
    last=(True, False),
)
def test_cache_equals_loop(place, entry, pool_cls, pool_clr, last):
    depth, reduce_at = place
    num_tokens, with_gap = entry
    cache = CrossLayerCache(
        num_tokens=num_tokens,
        with_gap=with_gap,
        recover_at_last=last,
        pool_cls=pool_cls,
        pool_clr=pool_clr,
        embed_dims=C,
        num_layers=depth,
        reduce_at=reduce_at,
    ).double()
    for parameter in cache.parameters():
        torch.nn.init.normal_(parameter)
    x = torch.randn(B, 1 + P, C, dtype=torch.float64, requires_grad=True)
    ours = run(cache, x, depth, reduce_at)
    theirs = slow_run(cache, x, depth, reduce_at, last)
    for got, expected in zip(ours, theirs, strict=True):
        assert got.shape == expected.shape
        assert torch.allclose(got, expected, rtol=0, atol=1e-12)
    wanted = [x, *cache.parameters()]
    grads = torch.autograd.grad(ours[-1].square().sum(), wanted)
    expected = torch.autograd.grad(theirs[-1].square().sum(), wanted)
    for got, other in zip(grads, expected, strict=True):
        assert torch.allclose(got, other, rtol=1e-9, atol=1e-12)


def test_average_ignores_tokens_of_zero_weight():
    x = torch.randn(2, 5, C)
    weight = torch.tensor([[1.0, 3, 0, 2, 5], [1, 0, 0, 0, 1]])
    tokens = Tokens(x, weight, num_pooled=4)
    average = CrossLayerCache(embed_dims=C).entry(tokens)[0]
    assert torch.allclose(average[0, 0], (x[0, 1] + x[0, 3]) / 2)
    assert not average[1].any()  # zero, not NaN
    covering_cls = CrossLayerCache(pool_cls=True, embed_dims=C)
    average = covering_cls.entry(tokens)[0]
    assert torch.allclose(average[0, 0], x[0, [0, 1, 3]].mean(0))
    assert torch.allclose(average[1, 0], x[1, 0])


def test_parameters_are_initialized_as_in_the_paper():
    cache = CrossLayerCache(num_tokens=3, embed_dims=256)
    assert cache.clr.shape == cache.clr_pos.shape == (1, 3, 256)
    assert not cache.clr.any()
    assert 0.017 < cache.clr_pos.std().item() < 0.023
    assert not list(CrossLayerCache(num_tokens=0).parameters())


def test_cache_excludes_cls_if_few_tokens_remain():
    cache = CrossLayerCache(num_tokens=3, with_gap=False, embed_dims=1)
    x = torch.tensor([[[7.0], [1.0], [2.0]]])  # CLS and two tokens
    (entry,) = cache.entry(Tokens(x))
    assert entry.flatten().tolist() == [1, 2]
