# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small vision transformers of every kind in timm."""

from functools import partial

import pytest
import torch
from installed import is_installed
from timm.layers import HybridEmbed, RmsNorm, SwiGLU
from timm.models.deit import VisionTransformerDistilled
from timm.models.vision_transformer import (
    ParallelScalingBlock,
    ParallelThingsBlock,
    ResPostBlock,
    VisionTransformer,
)
from torch import nn

from mmclca.models.reduced.timm_versions import DIFF_BLOCKS

SIZES = dict(img_size=32, patch_size=8, embed_dim=24, depth=4, num_heads=2)


def _hybrid(**options):
    convolutions = nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=4), nn.BatchNorm2d(8)
    )
    return HybridEmbed(convolutions, **options | dict(patch_size=2))


NO_CLS = dict(class_token=False, global_pool='avg')
KINDS = dict(
    plain={},
    no_cls=NO_CLS,
    no_cls_registers=dict(NO_CLS, reg_tokens=2, no_embed_class=True),
    registers=dict(reg_tokens=3, no_embed_class=True, init_values=0.1),
    registers_with_position=dict(reg_tokens=1, fc_norm=True),
    clip=dict(pre_norm=True, qkv_bias=False),
    average=dict(global_pool='avg'),
    largest=dict(global_pool='avgmax', qk_norm=True),
    map=dict(NO_CLS, global_pool='map', fc_norm=False),
    map_with_cls=dict(global_pool='map'),
    all_tokens=dict(global_pool='', num_classes=0),
    no_position=dict(pos_embed='none', final_norm=False),
    hybrid=dict(embed_layer=_hybrid),
    post_norm=dict(block_fn=ResPostBlock, init_values=0.1),
    parallel=dict(block_fn=ParallelThingsBlock, init_values=0.1),
    scaling=dict(block_fn=ParallelScalingBlock, qk_norm=True, qkv_bias=False),
    swiglu=dict(mlp_layer=SwiGLU, norm_layer=RmsNorm, act_layer=nn.SiLU),
    dynamic=dict(dynamic_img_size=True, dynamic_img_pad=True),
    wide=dict(img_size=(16, 48), patch_size=(8, 12)),
    distilled={},
)
if is_installed('timm', '1.0.16'):
    KINDS['average']['pool_include_prefix'] = True
    KINDS['largest']['scale_attn_norm'] = True
LATER = 'scaling_fused', 'diff', 'diff_parallel', 'diff_scaling'
if DIFF_BLOCKS:
    diff = dict(attn_layer='diff')
    KINDS |= dict(
        scaling_fused=dict(
            block_fn=partial(ParallelScalingBlock, fuse_out_proj=True)
        ),
        diff=diff,
        diff_parallel=dict(diff, block_fn=ParallelThingsBlock),
        diff_scaling=dict(block_fn=DIFF_BLOCKS[0]),
    )


def fill(model):
    """Set random float64 weights, so that no layer is close to zero."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.normal_(std=0.1, generator=generator)
        for name, buffer in model.named_buffers():
            # of batch normalization; zeros in place of a bias
            if 'running' in name or name.endswith('bias'):
                buffer.fill_('var' in name)
    return model.eval()


def small_timm(kind='plain', **options):
    """Build a vision transformer of timm."""
    if kind in LATER and not DIFF_BLOCKS:
        pytest.skip('needs timm 1.0.24')
    distilled = kind == 'distilled'
    build = VisionTransformerDistilled if distilled else VisionTransformer
    options = SIZES | dict(num_classes=5) | KINDS[kind] | options
    return fill(build(**options))


def photos(model, batch=3):
    """Random images at a model's size."""
    generator = torch.Generator().manual_seed(1)
    shape = batch, 3, *model.patch_embed.img_size
    return torch.randn(shape, generator=generator, dtype=torch.float64)
