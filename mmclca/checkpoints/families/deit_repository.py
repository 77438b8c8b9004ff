# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Families released in the DeiT repository: CaiT, ResMLP and others.

The others are PatchConvNet and parallel ViT; DeiT itself is in :mod:`.vit`.
"""

from torch import Tensor

from .family import (
    Family,
    Network,
    patch_settings,
    transformer_sizes,
    width_and_depth,
)
from .vit import BLOCK, EMBEDDING, HEAD, LAYER, LAYER_RENAMES, layer_renames


def read_cait_settings(weights: dict[str, Tensor]) -> dict:
    """Return the settings of a CaiT by its weights."""
    heads = weights['layers.0.attn.mix_logits.weight'].size(0)
    arch = transformer_sizes(weights, heads)
    return patch_settings(weights, weights['pos_embed'].size(1), arch)


def read_patch_convnet_settings(weights: dict[str, Tensor]) -> dict:
    """Return the settings of a PatchConvNet by its weights."""
    return dict(arch=width_and_depth(weights, 'pool.cls_token'))


def read_resmlp_settings(weights: dict[str, Tensor]) -> dict:
    """Return the settings of a ResMLP by its weights."""
    arch = width_and_depth(weights, 'layers.0.norm1.alpha')
    mlp = 'class_layers.0.mix.weight' in weights
    rows = weights['layers.0.mix.weight'].size(0)
    settings = patch_settings(weights, rows, arch)
    return dict(settings, pooling='class_mlp' if mlp else 'average')


# CaiT; timm has the same names
CLASS_LAYERS = layer_renames(
    r'blocks_token_only\.(\d+)', r'backbone.class_layers.\1', 'gamma1'
)
CAIT = Family(
    mark=r'blocks_token_only\.\d+\.',
    renames=(
        *EMBEDDING,
        (rf'{BLOCK}\.attn\.proj_l\.', rf'{LAYER}.attn.mix_logits.'),
        (rf'{BLOCK}\.attn\.proj_w\.', rf'{LAYER}.attn.mix_weights.'),
        *LAYER_RENAMES,
        *CLASS_LAYERS,
        (r'norm\.', 'backbone.ln1.'),
        (r'head\.', 'head.fc.'),
    ),
    backbone=Network(
        'mmclca.CaiT',
        ('class_layers.0.attn.q.weight', 'layers.0.attn.mix_logits.weight'),
        read_cait_settings,
    ),
)

# ViTs with parallel branches: names here, in DeiT releases (# is the branch
# number, if not 0), and in timm
BRANCH = r'backbone.layers.\1.branches.'
FIRST = layer_renames(BLOCK, f'{BRANCH}0')
NUMBERED = tuple(
    (rf'{BLOCK}\.{name}'.replace('#', r'(\d+)'), rf'{BRANCH}\2.{target}')
    for target, *names in (
        ('ln1.', r'norm1#\.', r'attns\.#\.norm\.'),
        ('ln2.', r'norm2#\.', r'ffns\.#\.norm\.'),
        ('attn.', r'attn#\.', r'attns\.#\.attn\.'),
        ('ffn.layers.0.0.', r'mlp#\.fc1\.', r'ffns\.#\.mlp\.fc1\.'),
        ('ffn.layers.1.', r'mlp#\.fc2\.', r'ffns\.#\.mlp\.fc2\.'),
        ('attn.gamma1.weight', r'gamma_1_#$', r'attns\.#\.ls\.gamma$'),
        ('ffn.gamma2.weight', r'gamma_2_#$', r'ffns\.#\.ls\.gamma$'),
    )
    for name in names
)
PARALLEL_VIT = Family(
    mark=r'blocks\.\d+\.(norm11|attns\.0)\.',
    renames=(*EMBEDDING, *FIRST, *NUMBERED, *HEAD),
)

# PatchConvNet; with a query per class, each class has a head
STEM = r'patch_embed\.proj\.(\d)\.0\.', r'backbone.patch_embed.projection.\1.'
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
        (r'head\.(?P<part>\d+)\.weight', 'per_class.weight'),
        (r'head\.(?P<part>\d+)\.bias', 'per_class.bias'),
    ),
    backbone=Network(
        'mmclca.PatchConvNet',
        ('layers.0.depthwise.weight',),
        read_patch_convnet_settings,
    ),
)

# ResMLP; timm has three other names, and vectors of shape (1, 1, C)
RESMLP_NETWORK = Network(
    'mmclca.ResMLP',
    ('layers.0.mix.weight', 'layers.0.norm1.alpha'),
    read_resmlp_settings,
)
RESMLP = Family(
    mark=r'blocks\.\d+\.(norm1\.alpha|linear_tokens\.)',
    renames=(
        (r'(patch_embed|stem)\.proj\.', 'backbone.patch_embed.projection.'),
        (rf'{BLOCK}\.(norm[12])\.', rf'{LAYER}.\2.'),
        (rf'{BLOCK}\.(attn|linear_tokens)\.', rf'{LAYER}.mix.'),
        (rf'{BLOCK}\.mlp(_channels)?\.fc1\.', rf'{LAYER}.ffn.layers.0.0.'),
        (rf'{BLOCK}\.mlp(_channels)?\.fc2\.', rf'{LAYER}.ffn.layers.1.'),
        (rf'{BLOCK}\.(gamma_|ls)1$', rf'{LAYER}.gamma1.weight'),
        (rf'{BLOCK}\.(gamma_|ls)2$', rf'{LAYER}.ffn.gamma2.weight'),
        (r'head\.', 'head.fc.'),
    ),
    values=((r'(.*\.(?:alpha|beta))', r'\1', lambda x: x.flatten()),),
    backbone=RESMLP_NETWORK,
)
