# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""PatchConvNet of DeiT's releases; with a query a class, also a head each."""

from .family import Family
from .timm_vit import BLOCK, LAYER, layer_renames

STEM = (
    r'patch_embed\.proj\.(\d)\.0\.',
    r'backbone.patch_embed.projection.\1.',
)
COLUMN = (
    (rf'{BLOCK}\.norm1\.', rf'{LAYER}.norm.'),
    (rf'{BLOCK}\.attn\.qkv_pos\.0\.', rf'{LAYER}.conv1.'),
    (rf'{BLOCK}\.attn\.qkv_pos\.2\.', rf'{LAYER}.depthwise.'),
    (rf'{BLOCK}\.attn\.qkv_pos\.4\.conv_reduce\.', rf'{LAYER}.se.conv1.conv.'),
    (rf'{BLOCK}\.attn\.qkv_pos\.4\.conv_expand\.', rf'{LAYER}.se.conv2.conv.'),
    (rf'{BLOCK}\.attn\.qkv_pos\.5\.', rf'{LAYER}.conv2.'),
    (rf'{BLOCK}\.gamma_1$', rf'{LAYER}.gamma.weight'),
)
POOL = (
    (r'cls_token$', 'backbone.pool.cls_token'),
    *layer_renames(r'blocks_token_only\.(0)', 'backbone.pool.layer', 'gamma1'),
    (r'norm\.', 'backbone.pool.ln.'),
)
PATCH_CONVNET = Family(
    mark=r'blocks\.\d+\.attn\.qkv_pos\.',
    renames=(
        STEM,
        *COLUMN,
        *POOL,
        (r'head\.', 'head.fc.'),
        (r'per_class\.', 'head.'),
    ),
    stacked=(
        (r'head\.(\d+)\.weight', 'per_class.weight'),
        (r'head\.(\d+)\.bias', 'per_class.bias'),
    ),
)
