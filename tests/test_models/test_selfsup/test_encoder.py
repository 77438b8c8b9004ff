# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Encoders of masked autoencoders and BEiT, and their stems."""

import pytest
import torch
from mmengine.config import Config
from small_models import arch, build
from small_selfsup import MAE, SIDE, encoder, shuffle
from tiny_run import ROOT

from mmclca.checkpoints.load import load
from mmclca.models.selfsup import fixed_masks
from mmclca.registry import MODELS

HMLP = dict(type='mmclca.HMLPStem', norm_cfg=dict(type='LN2d', eps=1e-6))
IMAGES = torch.randn(2, 3, SIDE, SIDE)
FINE_TUNED = (
    ROOT / 'configs/beit/vit-base-hmlp-p16_8xb128-100e_imagenet-224px.py'
)


def test_encoder_equals_mmpretrain():
    """Outputs and masks are equal."""
    ours = build(encoder())
    theirs = MODELS.build(encoder(type='MAEViT'))
    ours.init_weights()
    theirs.load_state_dict(ours.state_dict())
    for mask in (True, None):
        found = []
        for model in (ours, theirs):
            torch.manual_seed(3)
            found.append(model(IMAGES, mask))
        for one, other in zip(*found, strict=True):
            assert torch.equal(one, other)


def test_stem_output_depends_on_visible_patches_only():
    """The stem commutes with masking."""
    model = build(encoder(stem=HMLP)).double().eval()
    images, order = IMAGES.double(), shuffle(2)
    seen = model.encode(images, order)
    masked = seen.mask.view(2, 1, 4, 4).bool()
    masked = masked.repeat_interleave(16, 2).repeat_interleave(16, 3)
    again = model.encode(images.masked_fill(masked, 7.0), order)
    assert torch.equal(seen.inputs[-1], again.inputs[-1])
    tokens = model.patch_embed(images)[0] + model.pos_embed[:, 1:]
    index = order[:, :4, None].expand(-1, -1, tokens.size(-1))
    visible = seen.inputs[0][:, 1:]
    torch.testing.assert_close(visible, tokens.gather(1, index))


def test_encoder_segments_checkpointing_and_fixed_masks():
    model = build(encoder(num_segments=2, with_cp=True)).train()
    with fixed_masks(model, shuffle(2)):
        seen = model.encode(IMAGES)
    assert torch.equal(seen.ids_shuffle, shuffle(2))
    assert not torch.equal(model.encode(IMAGES).ids_shuffle, shuffle(2))
    z = model.segments(seen)
    assert [x is seen.inputs[i] for x, i in zip(z, (0, 2, 4), strict=True)]
    seen.inputs[-1].sum().backward()
    gradient = model.layers[0].attn.qkv.weight.grad.clone()
    model.zero_grad()
    model.with_cp = False
    model.encode(IMAGES, shuffle(2)).inputs[-1].sum().backward()
    assert torch.equal(model.layers[0].attn.qkv.weight.grad, gradient)


def test_loaded_weights_are_kept_if_initialized_again(tmp_path):
    """Also if loaded by an ``init_cfg``."""
    path = str(tmp_path / 'pretrained.pth')
    weights = build(encoder()).state_dict()
    torch.save(weights, path)
    loaded = MODELS.build(encoder())
    loaded.init_weights()
    load(loaded, path, strict=False)
    init = dict(type='Pretrained', checkpoint=path)
    for model in (loaded, MODELS.build(encoder(init_cfg=init))):
        model.init_weights()
        own = model.state_dict()
        assert all(torch.equal(own[key], weights[key]) for key in own)


def test_encoder_is_refused_if_file_is_classifier(tmp_path):
    weights, path = build(encoder()).state_dict(), str(tmp_path / 'head.pth')
    for name in ('model.head.weight', 'ifa_head.0.weight'):
        torch.save(weights | {name: torch.zeros(2, 16)}, path)
        with pytest.raises(ValueError, match='pre-training checkpoint'):
            load(build(MAE), path, strict=False)


def test_beit_output_does_not_depend_on_masked_pixels():
    layers = dict(arch=arch(2), img_size=SIDE, layer_scale_init_value=0.1)
    model = build(dict(type='mmclca.StemBEiTViT', stem=HMLP, **layers))
    model.eval()
    mask = (torch.arange(16) % 3 == 0).view(1, 4, 4).expand(2, -1, -1)
    hidden = mask.repeat_interleave(16, 1).repeat_interleave(16, 2)[:, None]
    (found,) = model(IMAGES, mask)
    (other,) = model(IMAGES.masked_fill(hidden, 5.0), mask)
    assert torch.equal(found, other)


def test_classifier_loads_beit_weights(tmp_path):
    """Each layer gets a copy of the shared bias."""
    shared = dict(arch=arch(2), img_size=SIDE, stem=HMLP)
    before = build(dict(type='mmclca.StemBEiTViT', **shared))
    bias = before.rel_pos_bias.relative_position_bias_table.data.normal_()
    path = str(tmp_path / 'pretrained.pth')
    weights = before.state_dict()
    torch.save({f'backbone.{key}': weights[key] for key in weights}, path)
    config = Config.fromfile(FINE_TUNED).model.backbone
    init = dict(type='Pretrained', checkpoint=path, prefix='backbone.')
    after = MODELS.build(dict(config, **shared, init_cfg=init))
    after.init_weights()
    for layer, own in zip(after.layers, before.layers, strict=True):
        assert torch.equal(layer.attn.relative_position_bias_table, bias)
        assert torch.equal(layer.attn.qkv.weight, own.attn.qkv.weight)
    stem = before.patch_embed.projection[0].weight
    assert torch.equal(after.patch_embed.projection[0].weight, stem)
    assert after(IMAGES)[0].shape == (2, 16)
