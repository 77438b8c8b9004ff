# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers of n branches against a slow loop, and what follows from it."""

import re

import pytest
import torch
import torch.nn.functional as F
from branches import looped, parallel, tokens
from small_models import vit
from torch.overrides import TorchFunctionMode

from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS

SETTINGS = dict(
    plain={},
    scaled=dict(layer_scale_init_value=0.1),
    unbiased=dict(layer_scale_init_value=0.1, qkv_bias=False),
)


def with_attend(layer, x):
    x = x + attend(layer.attn, layer.ln1(x))[0]
    return layer.ffn(layer.ln2(x), identity=x)


@pytest.mark.parametrize('settings', SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize('branches', [1, 2, 3, 4])
def test_equals_the_loop_over_branches(branches, settings):
    layer, x = parallel(branches, **settings), tokens()
    right = looped(layer.branches, x)
    for made in (
        layer.train()(x),
        layer.eval()(x),
        layer.fuse()(x),  # as mmpretrain runs it
        with_attend(layer.fuse(), x),
    ):
        torch.testing.assert_close(made, right, rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_loop():
    layer, x = parallel(3, **SETTINGS['scaled']), tokens()
    params = dict(layer.named_parameters())
    weights = torch.randn_like(x)
    right, *others = (
        torch.autograd.grad((made * weights).sum(), params.values())
        for made in (
            looped(layer.branches, x),
            layer.train()(x),
            layer.eval()(x),
        )
    )
    for grads in others:
        for name, grad, expected in zip(params, grads, right, strict=True):
            assert expected.any(), name
            torch.testing.assert_close(grad, expected, msg=name)


class Products(TorchFunctionMode):
    """Counts linear layers over tokens."""

    number = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.number += function is F.linear and args[0].dim() > 1
        return function(*args, **(kwargs or {}))


def test_training_takes_one_product_for_all_branches_of_a_kind():
    layer, x = parallel(3), tokens()
    with Products() as products:
        layer.train()(x)
    assert products.number == 4
    with Products() as products:
        layer.eval()(x)
    assert products.number == 3 * 4


def test_names_are_those_of_plain_layers_and_branches_start_apart():
    backbone = MODELS.build(vit(2, branches=2))
    names = MODELS.build(vit(2)).state_dict()
    expected = {
        re.sub(r'(layers\.\d)', rf'\1.branches.{branch}', name, count=1)
        for name in names
        for branch in (0, 1)
    }
    assert backbone.state_dict().keys() == expected
    for _ in range(2):
        one, other = backbone.layers[0].branches
        for part in ('attn.qkv', 'attn.proj', 'ffn.layers.0.0'):
            weights = [b.get_submodule(part).weight for b in (one, other)]
            assert not torch.equal(*weights), part
        backbone.init_weights()
