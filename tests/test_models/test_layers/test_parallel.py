# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Layers with n branches against a slow loop, with stochastic depth."""

import re

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)
from small_models import vit
from torch import nn
from torch.overrides import TorchFunctionMode

from mmclca.models.layers import parallel as parallel_layers
from mmclca.models.layers.parallel import ParallelLayer, kept_branches
from mmclca.models.reduction.attention import attend
from mmclca.registry import MODELS


def parallel(branches, **settings):
    """Return a float64 layer with random parameters, 16 channels, 2 heads."""
    norm = dict(type='LN', eps=1e-6)
    plain = TransformerEncoderLayer(16, 2, 32, norm_cfg=norm, **settings)
    layer = ParallelLayer(plain, branches).double()
    with torch.no_grad():
        for param in layer.parameters():
            param.add_(0.2 * torch.randn_like(param))
    return layer


def tokens():
    """Return random tokens (3, 7, 16)."""
    return torch.randn(3, 7, 16, dtype=torch.float64)


def looped(branches, x):
    """Compute a parallel layer by definition: sums of branch outputs."""
    x = x + sum(one.attn(one.ln1(x)) for one in branches)
    return x + sum(
        one.ffn.gamma2(one.ffn.layers(one.ln2(x))) for one in branches
    )


def with_attend(layer, x):
    x = x + attend(layer.attn, layer.ln1(x))[0]
    return layer.ffn(layer.ln2(x), identity=x)


def same(out, expected):
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    'settings', [{}, dict(layer_scale_init_value=0.1, qkv_bias=False)]
)
def test_layer_equals_loop_over_branches(settings):
    layer, x = parallel(3, **settings), tokens()
    expected = looped(layer.branches, x)
    same(layer.train()(x), expected)
    same(layer.eval()(x), expected)
    same(layer.fuse()(x), expected)
    same(with_attend(layer.fuse(), x), expected)


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


def drop_slowly(x, parts, mask):
    """Add the kept residuals, times 1 / (1 - 0.75), to each sample."""
    kept = torch.tensor(mask, dtype=x.dtype).T[:, :, None, None]
    residuals = torch.stack([part(x) for part in parts])
    return x + 4 * (kept * residuals).sum(dim=0)


def test_samples_and_halves_drop_branches_independently(monkeypatch):
    layer, x = parallel(2, drop_path_rate=0.75).train(), tokens()
    masks = [[1, 1], [1, 0], [0, 0]], [[0, 1], [0, 0], [1, 0]]
    drawn = [torch.tensor(mask, dtype=x.dtype) for mask in masks]
    monkeypatch.setattr(
        parallel_layers, 'kept_branches', lambda *_: drawn.pop(0)
    )
    out = layer(x)
    branches = layer.eval().branches
    attentions = [nn.Sequential(one.ln1, one.attn) for one in branches]
    ffns = [nn.Sequential(one.ln2, one.ffn.layers) for one in branches]
    expected = drop_slowly(x, attentions, masks[0])
    same(out, drop_slowly(expected, ffns, masks[1]))


def test_kept_branches_are_independent_with_expected_mean():
    kept = kept_branches(torch.empty(20000, 1, 1), branches=3, drop_prob=0.2)
    assert kept.shape == (20000, 3) and set(kept.unique().tolist()) == {0, 1}
    assert kept.mean(dim=0).tolist() == pytest.approx([0.8] * 3, abs=0.015)
    among_branches = torch.corrcoef(kept.T) - torch.eye(3)
    assert among_branches.abs().max() < 0.03
    among_samples = torch.corrcoef(torch.stack((kept[:-1], kept[1:]))[:, :, 0])
    assert among_samples[0, 1].abs() < 0.03


def test_layer_is_identity_if_all_branches_are_dropped():
    layer, x = parallel(2, drop_path_rate=1.0).train(), tokens()
    assert torch.equal(layer(x), x)
