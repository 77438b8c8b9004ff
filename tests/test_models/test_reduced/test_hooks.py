# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Hooks and wrappers of a reduced model's modules."""

import pickle
from copy import deepcopy
from functools import partial

import pytest
import torch
from installed import needs
from small_timm import photos, small_timm
from small_transformers import small_images, small_transformer
from timm.models._features import FeatureHooks
from timm.utils import AttentionExtract
from torch import nn

import mmclca
from mmclca.models import list_methods

EXACT = dict(rtol=0, atol=1e-10)


class Wrapper(nn.Module):
    """Double the output of a module."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x, **inputs):
        return 2 * self.module(x, **inputs)


class DeafWrapper(Wrapper):
    """Wrapper without keyword arguments."""

    def forward(self, x, attn_mask=None, is_causal=False):
        return self.module(x, attn_mask=attn_mask, is_causal=is_causal)


def double(module, inputs, output):
    return 2 * output


def shift(module, inputs):
    return (inputs[0] + 1,)


def mask_last(module, inputs, options):
    """Ignore the last token."""
    mask = inputs[0].new_zeros(1, 1, 1, inputs[0].size(1))
    mask[..., -1] = -torch.inf
    return inputs, options | dict(attn_mask=mask)


def change(model):
    """Set hooks on inputs and outputs of several modules."""
    for name in ('blocks.1', 'blocks.2.attn', 'blocks', 'norm'):
        model.get_submodule(name).register_forward_hook(double)
    for name in ('blocks.2', 'blocks.1.attn', 'blocks.3.mlp'):
        model.get_submodule(name).register_forward_pre_hook(shift)
    attn = model.blocks[3].attn
    attn.register_forward_pre_hook(mask_last, with_kwargs=True)


@needs('timm', '1.0.16')
@pytest.mark.parametrize('before', [True, False])
@torch.no_grad()
def test_hooks_change_outputs_as_in_timm(before):
    model = small_timm()
    images = photos(model)
    plain = model(images)
    change(model)
    reduced = model if before else small_timm()
    # this method does not reduce at keep rate 1
    reduced = mmclca.reduce_tokens(reduced, 'ToMe', 1.0)
    if not before:
        change(reduced)
    torch.testing.assert_close(reduced(images), model(images), **EXACT)
    assert (model(images) - plain).abs().max() > 1e-3


@pytest.mark.parametrize(
    'kind',
    [
        'plain',
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ('parallel', 'diff', 'scaling')
        ),
    ],
)
@torch.no_grad()
def test_hooks_run_in_order_of_timm(kind):
    model = small_timm(kind)
    names = []
    for name, module in model.named_modules():
        # a hook of attn_drop would run here, but not in timm
        if 'drop' not in name:
            module.register_forward_hook(partial(append_name, names, name))
    model(photos(model))
    expected = set(names)
    for method in ('ToMe', 'MCTF', 'SiT'):
        names.clear()
        mmclca.reduce_tokens(model, method, 0.7)(photos(model))
        assert {*names} == expected
        assert names.count('blocks.1') == 1
        assert names[-1] == ''


def append_name(names, name, *call):
    names.append(name)


@torch.no_grad()
def test_hook_object_of_original_gets_reduced_features():
    model = small_timm()
    hooks = FeatureHooks(['blocks.2', 'blocks.1.attn'], model.named_modules())
    reduced = mmclca.reduce_tokens(model, 'EViT', 0.5)
    reduced(photos(model))
    features = hooks.get_output(torch.device('cpu'))
    assert features['blocks.2'].shape[1] < 17


@torch.no_grad()
def test_attention_extract_equals_timm_without_fused_attention():
    model = small_timm()
    reduced = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    images = photos(model)
    fused = reduced(images)
    maps = AttentionExtract(reduced, method='hook')(images)
    for part in model.blocks:
        part.attn.fused_attn = False  # timm calls the hooks only then
    expected = AttentionExtract(model, method='hook')(images)
    torch.testing.assert_close(dict(maps), dict(expected))
    torch.testing.assert_close(reduced(images), fused)


def test_backward_hooks_get_gradients():
    model = small_timm()
    reduced = mmclca.reduce_tokens(model, 'EViT', 0.5)
    sizes = []
    for name in ('blocks.2', 'blocks.2.attn'):
        reduced.get_submodule(name).register_full_backward_hook(
            lambda _, inputs, outputs: sizes.append(outputs[0].shape[1])
        )
    reduced.train()(photos(model)).sum().backward()
    assert sizes == [10, 7]  # before and after the reduction


@pytest.mark.slow
@torch.no_grad()
def test_wrapper_takes_effect_or_is_refused():
    images = photos(small_timm())
    for place in ('blocks.1.attn', 'blocks.2.mlp'):
        model = small_timm()
        wrapper = Wrapper(model.get_submodule(place))
        parent, _, name = place.rpartition('.')
        setattr(model.get_submodule(parent), name, wrapper)
        reduced = mmclca.reduce_tokens(model, 'ToMe', 1.0)
        torch.testing.assert_close(reduced(images), model(images), **EXACT)
        mmclca.reduce_tokens(model, 'MCTF', 0.5)(images)
    reduced.blocks[3] = Wrapper(reduced.blocks[3])
    model.blocks[3] = Wrapper(model.blocks[3])
    torch.testing.assert_close(reduced(images), model(images), **EXACT)
    model.blocks[0].attn = DeafWrapper(model.blocks[0].attn)
    with pytest.raises(ValueError, match='kwargs'):
        mmclca.reduce_tokens(model)


@pytest.mark.parametrize(
    ('name', 'hook', 'message'),
    [
        ('blocks.1', lambda _, x, y: y[:, :3], 'shape'),
        ('blocks', lambda _, x, y: torch.cat((y, y), dim=1), 'shape'),
        ('blocks.1', lambda _, x, y: (y,), 'tuple'),
    ],
)
def test_hook_is_refused_if_it_changes_the_shape(name, hook, message):
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', 0.5)
    reduced.get_submodule(name).register_forward_hook(hook)
    with pytest.raises(ValueError, match=message):
        reduced(photos(reduced))


def test_hook_is_refused_if_it_drops_arguments():
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', 0.5)
    reduced.blocks[1].attn.register_forward_pre_hook(
        lambda _, inputs, options: (inputs, {}), with_kwargs=True
    )
    with pytest.raises(ValueError, match='keyword'):
        reduced(photos(reduced))


@torch.no_grad()
def test_copies_keep_their_hooked_layers():
    reduced = mmclca.reduce_tokens(small_timm(), 'ToMe', 0.5)
    images = photos(reduced)
    for copied in (deepcopy(reduced), pickle.loads(pickle.dumps(reduced))):
        copied.blocks[2].attn.register_forward_hook(double)
        assert not torch.equal(copied(images), reduced(images))


@pytest.mark.slow
@pytest.mark.parametrize('method', list_methods())
@torch.no_grad()
def test_hooks_of_transformers_change_outputs(method):
    model = small_transformer('ViTForImageClassification')
    images = small_images()
    reduced = mmclca.reduce_tokens(model, method, 0.5)
    plain = reduced(images).logits
    layer = reduced.layers[1]
    calls = []
    for part in (layer, layer.attention, layer.mlp):
        part.register_forward_hook(lambda *_: calls.append(1))
    layer.attention.register_forward_hook(
        lambda _, inputs, output: (2 * output[0], *output[1:])
    )
    assert not torch.equal(plain, reduced(images).logits)
    assert len(calls) == 3
