# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Every vision transformer in timm's own list."""

import pytest
import timm
import torch
from small_timm import fill, photos
from timm.models.vision_transformer import VisionTransformer

import mmclca
from mmclca.utils.meta_device import on_meta_device

# modules of timm that build a VisionTransformer
MODULES = 'deit', 'vision_transformer', 'vision_transformer_hybrid', 'vitamin'


def small(name):
    """Build two layers of a model, with random weights and few patches."""
    with on_meta_device():
        model = timm.create_model(name, depth=2)
        patch = model.patch_embed.patch_size[0]
        if not hasattr(model.patch_embed, 'backbone'):
            model = timm.create_model(name, depth=2, img_size=3 * patch)
    return fill(model.to_empty(device='cpu'))


@pytest.mark.slow
@torch.inference_mode()
def test_every_vit_in_timm_converts_with_equal_outputs(capsys):
    names = [name for x in MODULES for name in timm.list_models(module=x)]
    differ = []
    for name in names:
        model = small(name)
        assert isinstance(model, VisionTransformer)
        images = photos(model, batch=1)
        expected = model(images)
        same = mmclca.reduce_tokens(model, None)
        found = same.forward_head(same.forward_tokens(images)[0][0])
        exact = (found - expected).abs().max() < 1e-10
        differ += [] if exact and expected.std() > 1e-3 else [name]
    with capsys.disabled():
        print(f'\n{len(names) - len(differ)} of {len(names)} ViTs convert')
    assert len(names) > 100 and not differ
