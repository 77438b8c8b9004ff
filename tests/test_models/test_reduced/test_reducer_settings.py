# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Settings of ``reduce_tokens`` and changes of a built model."""

import pytest
import torch
from installed import NEEDS_COMPILER
from small_timm import photos, small_timm

import mmclca
from mmclca.models import list_methods

UNTRAINED = 'DPCKNN', 'DynamicViT', 'PatchMerger', 'SiT', 'Sinkhorn'
FIXED = 'PatchMerger', 'SiT', 'Sinkhorn'
QUICK = None, 'SiT', 'ToMe'  # without the marker


def each_method(*others):
    """Return all methods; most of them are slow."""
    return [
        method
        if method in QUICK
        else pytest.param(method, marks=pytest.mark.slow)
        for method in (*others, *list_methods())
    ]


@pytest.mark.parametrize('method', each_method())
@torch.no_grad()
def test_new_keep_rate_acts_at_once(method):
    model = small_timm()
    images = photos(model)
    reduced = mmclca.reduce_tokens(model, method, 0.5, layers=(1, 2))
    if method in FIXED:
        with pytest.raises(ValueError, match='parameters'):
            reduced.reducer.keep_rate = 0.9
        return
    for keep_rate in (0.9, (0.9, 0.7), 0.5):
        built = mmclca.reduce_tokens(model, method, keep_rate, layers=(1, 2))
        built.reducer.load_state_dict(reduced.reducer.state_dict())
        reduced.reducer.keep_rate = keep_rate
        assert repr(reduced.reducer) == repr(built.reducer)
        torch.testing.assert_close(reduced(images), built(images))
    assert mmclca.cost(reduced).tokens == mmclca.cost(built).tokens


@torch.no_grad()
def test_new_counts_replace_each_other():
    model = small_timm()
    counts = dict(prune=[8, 6], merge=[7, 5])
    reduced = mmclca.reduce_tokens(model, 'DiffRate', layers=(1, 2), **counts)
    reducer = reduced.reducer
    assert 'prune=[8, 6]' in repr(reducer) and reducer.count_patches(1) == 5
    reducer.num_tokens = [12, 4]
    assert reduced.forward_features(photos(model)).size(1) == 1 + 4
    reducer.keep_rate = 0.5
    assert reducer.num_tokens is None
    assert reduced.forward_features(photos(model)).size(1) == 1 + 4
    assert 'keep_rate=0.5, layers=(1, 2)' in repr(reduced)


def test_new_layers_are_refused():
    reducer = mmclca.reduce_tokens(small_timm(), layers=(1, 2)).reducer
    with pytest.raises(ValueError, match='original model again'):
        reducer.layers = (0, 3)
    assert reducer.layers == (1, 2)


@pytest.mark.parametrize('keep_rate', ['0.7', 0, 1.5, (0.7,), None, True])
def test_new_keep_rate_is_checked(keep_rate):
    reducer = mmclca.reduce_tokens(small_timm(), 'EViT', 0.5).reducer
    with pytest.raises(ValueError, match='keep_rate') as error:
        reducer.keep_rate = keep_rate
    assert repr(keep_rate) in str(error.value)
    assert reducer.keep_rate == 0.5 and reducer.keep_rates == 3 * (0.5,)


@NEEDS_COMPILER
@pytest.mark.slow
@torch.no_grad()
def test_new_keep_rate_acts_in_compiled_model():
    model = small_timm()
    images = photos(model)
    reduced = mmclca.reduce_tokens(model, 'ToMe', 0.9)
    compiled = torch.compile(reduced, backend='eager', fullgraph=True)
    for keep_rate in (0.9, 0.6):
        reduced.reducer.keep_rate = keep_rate
        torch.testing.assert_close(compiled(images), reduced(images))


def test_learned_counts_are_not_replaced():
    model = small_timm()
    reduced = mmclca.reduce_tokens(model, 'DiffRate', layers=1, target=1e-4)
    with pytest.raises(ValueError, match='target'):
        reduced.reducer.keep_rate = 0.5


@pytest.mark.parametrize('name', ['r', 'keep_rate', 'num_tokens'])
def test_rate_of_model_names_reducer(name):
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', 0.5)
    with pytest.raises(AttributeError, match='reducer.keep_rate'):
        setattr(reduced, name, 0.7)


def test_rate_without_method_is_refused():
    reduced = mmclca.reduce_tokens(small_timm(), None)
    with pytest.raises(ValueError, match='method'):
        reduced.reducer.keep_rate = 0.7


@pytest.mark.parametrize('method', each_method(None))
def test_untrained_method_warns_in_one_line(method, capsys):
    mmclca.reduce_tokens(small_timm(), method, 0.7)
    text = capsys.readouterr().err
    assert text.count('\n') == (method in UNTRAINED)
    assert method is None or (method in text) == (method in UNTRAINED)


@torch.no_grad()
def test_hint_for_r_merges_r_tokens_per_layer():
    model = small_timm()
    with pytest.raises(ValueError, match='ToMe') as error:
        mmclca.reduce_tokens(model, 'ToMe', r=3)
    settings = str(error.value)
    assert 'layers=range(4)' in settings
    assert 'num_tokens=range(13, 3, -3)' in settings
    reduced = mmclca.reduce_tokens(
        model, 'ToMe', layers=range(4), num_tokens=range(13, 3, -3)
    )
    assert mmclca.cost(reduced).tokens == [14, 11, 8, 5]


@pytest.mark.parametrize(
    ('inputs', 'settings', 'message'),
    [
        (['ATC'], dict(linkag='single'), 'linkage'),
        (['ToMe'], dict(r=100), 'keep_rate'),
        (['ToMe'], dict(embed_dims=3), 'embed_dims'),
        ([0.5], {}, 'keep_rate=0.5'),
        ([dict(type='ToMe')], {}, 'method'),
        ([None], dict(num_tokens=[3]), 'num_tokens'),
        (['EViT', '0.7'], {}, "'0.7'"),
        (['ToMe', None], {}, 'keeps all tokens'),
    ],
)
def test_wrong_settings_are_named(inputs, settings, message):
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(small_timm(), *inputs, **settings)
    assert '\n' not in str(error.value)
