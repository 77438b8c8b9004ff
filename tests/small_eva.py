# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small models of timm's class ``Eva``, with rotary position embeddings."""

import re

import timm
import torch
from timm.models.eva import Eva

SIZES = dict(depth=4, num_heads=2, embed_dim=64)
SHARED = dict(num_kv_heads=(1, 2, 1, 2))  # one number of heads per layer
# a name of each sort in timm, with a class token
NAMES = (
    'vit_small_patch16_dinov3',
    'eva02_small_patch14_224',
    'eva02_base_patch16_clip_224',
    'eva02_enormous_patch14_clip_224',
    'vit_small_patch16_rope_mixed_224',
    'vit_small_patch16_rope_224',
    'vit_pe_core_small_patch16_384',
    'vit_base_patch16_sapiens2',
)
# settings of no name in timm
OWN = dict(
    mrope=dict(rope_type='mrope', rope_mrope_section=(4, 6, 6)),
    separate=dict(qkv_fused=False, use_post_norm=True),
    dynamic=dict(dynamic_img_size=True, ref_feat_shape=4),
    no_cls=dict(class_token=False, num_reg_tokens=2),
)
ROPE = dict(img_size=48, patch_size=8, use_rot_pos_emb=True, num_classes=5)


def small_eva(kind, **options):
    """Build a small model of 6 x 6 patches, with random float64 weights."""
    if kind in OWN:
        model = Eva(**(SIZES | ROPE | OWN[kind] | options))
    else:
        model = _small_name(kind, options)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.double().named_parameters():
            if not name.startswith('rope.'):
                parameter.normal_(std=0.2, generator=generator)
    return model.eval()


def _small_name(name, options):
    patch = int(re.search(r'patch(\d+)', name)[1])
    return timm.create_model(
        name, img_size=6 * patch, **_sizes(name) | options
    )


def _sizes(name):
    return SIZES | (SHARED if 'sapiens2' in name else {})
