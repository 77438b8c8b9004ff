# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers with n branches against a slow loop."""

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
def test_layer_equals_loop_over_branches(settings):
    layer, x = parallel(3, **settings), tokens()
    expected = looped(layer.branches, x)
    for out in (
        layer.train()(x),
        layer.eval()(x),
        layer.fuse()(x),
        with_attend(layer.fuse(), x),
    ):
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


class LinearCounter(TorchFunctionMode):
    """Count linear layers over tokens."""

    number = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.number += function is F.linear and args[0].dim() > 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize('train, number', [(True, 4), (False, 3 * 4)])
def test_training_joins_products_of_branches(train, number):
    layer, x = parallel(3).train(train), tokens()
    with LinearCounter() as counter:
        layer(x)
    assert counter.number == number


def test_branches_have_plain_names_and_different_weights():
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
