# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""ResMLP: DeiT's releases, and timm, which has three names of its own and
vectors of (1, 1, C)."""

from .family import Family
from .timm_vit import BLOCK, LAYER

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
