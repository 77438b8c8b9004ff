# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The image tower of open_clip."""

from .family import POS_EMBED, Family

BLOCK, LAYER = r'transformer\.resblocks\.(\d+)', r'backbone.layers.\1'
CLIP = Family(
    mark=r'transformer\.resblocks\.\d+\.',
    renames=(
        (r'class_embedding$', 'backbone.cls_token'),
        (r'positional_embedding$', POS_EMBED),
        (r'conv1\.', 'backbone.patch_embed.projection.'),
        (r'ln_pre\.', 'backbone.pre_norm.'),
        (rf'{BLOCK}\.ln_([12])\.', rf'{LAYER}.ln\2.'),
        (rf'{BLOCK}\.attn\.in_proj_', rf'{LAYER}.attn.qkv.'),
        (rf'{BLOCK}\.attn\.out_proj\.', rf'{LAYER}.attn.proj.'),
        (rf'{BLOCK}\.mlp\.c_fc\.', rf'{LAYER}.ffn.layers.0.0.'),
        (rf'{BLOCK}\.mlp\.c_proj\.', rf'{LAYER}.ffn.layers.1.'),
        (r'ln_post\.', 'backbone.ln1.'),
        (r'proj$', 'head.layers.head.weight'),
        (r'head\.bias$', 'head.layers.head.bias'),
    ),
    values=(
        ('class_embedding', 'class_embedding', lambda x: x.reshape(1, 1, -1)),
        ('positional_embedding', 'positional_embedding', lambda x: x[None]),
        # the projection is a head without a bias
        ('proj', 'head.bias', lambda x: x.new_zeros(x.size(1))),
        ('proj', 'proj', lambda x: x.t()),
    ),
)
