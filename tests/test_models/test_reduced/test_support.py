# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Refused models, with the difference and a remedy."""

from copy import deepcopy
from types import MethodType

import pytest
import timm
import torch
from installed import needs
from mmpretrain.models import VisionTransformer as MMPretrainViT
from small_timm import SIZES, photos, small_timm
from timm.models.vision_transformer import Attention, Block, VisionTransformer
from torch import nn
from torchvision.models import VisionTransformer as TorchvisionViT

import mmclca
from mmclca.utils.meta_device import on_meta_device


class OtherBlock(nn.Identity):
    """A layer of no class in timm, with any settings."""


class OwnBlock(Block):
    def forward(self, x, **options):
        return x


class OwnAttention(Attention):
    def forward(self, x, **options):
        return x


class OwnViT(VisionTransformer):
    def forward_features(self, x):
        return super().forward_features(x)


class SmallViT(VisionTransformer):
    """A subclass with the behavior of its base class."""

    def __init__(self, **options):
        super().__init__(**SIZES | options)


class SmallBlock(Block):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)


def refused(model, message):
    with pytest.raises(ValueError, match=message) as error:
        mmclca.reduce_tokens(model)
    assert '\n' not in str(error.value)


@pytest.mark.parametrize(
    'name', ['', 'blocks.1', 'blocks.1.attn', 'blocks.1.mlp', 'patch_embed']
)
def test_own_forward_is_refused_with_its_place(name):
    model = small_timm()
    module = model.get_submodule(name)
    module.forward = MethodType(type(module).forward, module)
    refused(model, r'del model.*\.forward')
    del module.forward
    mmclca.reduce_tokens(model)


@pytest.mark.parametrize('name', ['forward_features', 'pool', '_pos_embed'])
def test_own_method_of_model_is_refused(name):
    model = small_timm()
    setattr(model, name, lambda *inputs: 0)
    refused(model, name)


@pytest.mark.parametrize(
    ('wrap', 'place'),
    [
        (nn.DataParallel, r'model\.module'),
        (lambda x: nn.Sequential(nn.Identity(), x), r'model\[1\]'),
        pytest.param(
            torch.compile, r'model\._orig_mod', marks=pytest.mark.slow
        ),
    ],
)
def test_wrapper_is_refused_with_the_module_to_pass(wrap, place):
    refused(wrap(small_timm()), place)


@pytest.mark.slow
def test_features_only_is_refused_with_the_module_to_pass():
    with on_meta_device():
        model = timm.create_model('vit_tiny_patch16_224', features_only=True)
    refused(model, r'model\.model')


@pytest.mark.slow
def test_compiled_model_becomes_an_uncompiled_one(capsys):
    model = small_timm()
    model.compile(backend='eager')
    reduced = mmclca.reduce_tokens(model, 'ToMe', 0.5)
    assert 'compile' in capsys.readouterr().err
    assert reduced.forward_features(photos(model)).size(1) < 17
    assert reduced(photos(model)).equal(reduced.forward(photos(model)))
    reduced.compile(backend='eager')
    assert deepcopy(reduced)._compiled_call_impl is None


@pytest.mark.parametrize(
    ('build', 'message'),
    [
        (lambda: small_timm(block_fn=OtherBlock), r'OtherBlock .*blocks\.0'),
        (lambda: small_timm(block_fn=OwnBlock), r'OwnBlock .*forward\(\)'),
        pytest.param(
            lambda: small_timm(attn_layer=OwnAttention),
            r'blocks\.0\.attn',
            marks=needs('timm', '1.0.24'),
        ),
        (lambda: OwnViT(**SIZES), r'OwnViT .*forward_features\(\)'),
        (
            lambda: TorchvisionViT(32, 8, 1, 2, 8, 8),
            r'torchvision\..*VisionTransformer .*of timm',
        ),
        (
            lambda: MMPretrainViT('deit-tiny', img_size=32),
            r'mmpretrain\..*VisionTransformer .*of timm',
        ),
        (lambda: 3, 'module'),
    ],
)
def test_other_class_is_refused_with_the_difference(build, message):
    refused(build(), message)


def test_reduced_model_is_refused():
    refused(mmclca.reduce_tokens(small_timm()), 'already reduced')


def test_replaced_method_of_timm_is_refused(monkeypatch):
    monkeypatch.setattr(Attention, 'forward', OwnAttention.forward)
    refused(small_timm(), 'OwnAttention.forward')


@torch.no_grad()
def test_subclass_without_own_methods_is_converted():
    model = SmallViT(block_fn=SmallBlock).double().eval()
    images = photos(model)
    same = mmclca.reduce_tokens(model, 'ToMe', 1.0)
    torch.testing.assert_close(same(images), model(images))
