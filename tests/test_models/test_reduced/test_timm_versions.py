# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts that an older timm lacks."""

import pytest
import torch
from small_timm import photos, small_timm

import mmclca
from mmclca.models.reduced.timm_versions import pools_prefix, select_arguments
from mmclca.registry import MODELS


def test_arguments_with_values_are_selected():
    def forward(x, indices=None, norm=False, output_fmt='NCHW'):
        return x

    chosen = select_arguments(
        forward, indices=0, norm=False, output_fmt='NLC', is_causal=False
    )
    assert chosen == dict(indices=0, output_fmt='NLC')


@pytest.mark.parametrize(
    ('version', 'message'),
    [
        ('1.0.11', r'is_causal needs timm 1\.0\.26'),
        ('1.0.31', r'is_causal is no argument of .* timm 1\.0\.31'),
    ],
)
def test_argument_that_timm_lacks_is_refused_by_name(
    version, message, monkeypatch
):
    monkeypatch.setattr('timm.__version__', version)
    with pytest.raises(mmclca.Error, match=message):
        select_arguments(lambda x: x, is_causal=True)


def test_dinov3_in_a_config_names_the_needed_timm(monkeypatch):
    monkeypatch.setattr('timm.list_models', lambda: ['vit_tiny_patch16_224'])
    monkeypatch.setattr('timm.__version__', '1.0.19')
    arch = 'vit_small_patch16_dinov3'
    with pytest.raises(mmclca.Error, match=r'needs timm 1\.0\.20 or later'):
        MODELS.build(dict(type='mmclca.TimmViT', arch=arch))
    with pytest.raises(mmclca.Error, match='is not in timm'):
        MODELS.build(dict(type='mmclca.TimmViT', arch='dino'))


@pytest.mark.parametrize(('kind', 'pooled'), [('map', True), ('plain', False)])
def test_prefix_is_pooled_as_in_timm_1_0_11(kind, pooled):
    model = small_timm(kind)
    vars(model).pop('pool_include_prefix', None)
    assert pools_prefix(model) == pooled


@torch.no_grad()
def test_attention_without_later_parts_has_equal_outputs():
    model = small_timm()
    images = photos(model)
    expected = mmclca.reduce_tokens(model, 'EViT', 0.5)(images)
    for block in model.blocks:
        for name in ('norm', 'gate'):
            block.attn._modules.pop(name, None)
    earlier = mmclca.reduce_tokens(model, 'EViT', 0.5)
    torch.testing.assert_close(earlier(images), expected)
