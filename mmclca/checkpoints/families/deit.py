# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Other networks of DeiT's releases, of which timm has some by other names."""

from .family import Family
from .vit import BLOCK, EMBEDDING, HEAD, LAYER, LAYERS, layer_renames

# CaiT, in timm by the same names
TALKING_HEADS = (
    (rf'{BLOCK}\.attn\.proj_l\.', rf'{LAYER}.attn.mix_logits.'),
    (rf'{BLOCK}\.attn\.proj_w\.', rf'{LAYER}.attn.mix_weights.'),
)
CLASS_LAYERS = layer_renames(
    r'blocks_token_only\.(\d+)', r'backbone.class_layers.\1', 'gamma1'
)
CAIT = Family(
    mark=r'blocks_token_only\.\d+\.',
    renames=(
        *EMBEDDING,
        *TALKING_HEADS,
        *LAYERS,
        *CLASS_LAYERS,
        (r'norm\.', 'backbone.ln1.'),
        (r'head\.', 'head.fc.'),
    ),
)

# vision transformers of parallel branches: in DeiT's releases the parts of
# branch b > 0 end in its number; NUMBERED_TIMM is timm's ParallelThingsBlock
BRANCH = r'backbone.layers.\1.branches.'
FIRST = layer_renames(BLOCK, f'{BRANCH}0')
NUMBERED = (
    (rf'{BLOCK}\.norm([12])(\d+)\.', rf'{BRANCH}\3.ln\2.'),
    (rf'{BLOCK}\.attn(\d+)\.', rf'{BRANCH}\2.attn.'),
    (rf'{BLOCK}\.mlp(\d+)\.fc1\.', rf'{BRANCH}\2.ffn.layers.0.0.'),
    (rf'{BLOCK}\.mlp(\d+)\.fc2\.', rf'{BRANCH}\2.ffn.layers.1.'),
    (rf'{BLOCK}\.gamma_1_(\d+)$', rf'{BRANCH}\2.attn.gamma1.weight'),
    (rf'{BLOCK}\.gamma_2_(\d+)$', rf'{BRANCH}\2.ffn.gamma2.weight'),
)
NUMBERED_TIMM = (
    (rf'{BLOCK}\.attns\.(\d+)\.norm\.', rf'{BRANCH}\2.ln1.'),
    (rf'{BLOCK}\.attns\.(\d+)\.attn\.', rf'{BRANCH}\2.attn.'),
    (rf'{BLOCK}\.attns\.(\d+)\.ls\.gamma$', rf'{BRANCH}\2.attn.gamma1.weight'),
    (rf'{BLOCK}\.ffns\.(\d+)\.norm\.', rf'{BRANCH}\2.ln2.'),
    (rf'{BLOCK}\.ffns\.(\d+)\.mlp\.fc1\.', rf'{BRANCH}\2.ffn.layers.0.0.'),
    (rf'{BLOCK}\.ffns\.(\d+)\.mlp\.fc2\.', rf'{BRANCH}\2.ffn.layers.1.'),
    (rf'{BLOCK}\.ffns\.(\d+)\.ls\.gamma$', rf'{BRANCH}\2.ffn.gamma2.weight'),
)
PARALLEL_VIT = Family(
    mark=r'blocks\.\d+\.(norm11|attns\.0)\.',
    renames=(*EMBEDDING, *FIRST, *NUMBERED, *NUMBERED_TIMM, *HEAD),
)

# PatchConvNet; with a query a class, also a head each
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
        (r'head\.(?P<part>\d+)\.weight', 'per_class.weight'),
        (r'head\.(?P<part>\d+)\.bias', 'per_class.bias'),
    ),
)

# ResMLP; timm has three names of its own, and vectors of (1, 1, C)
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
)
