# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""CaiT, in DeiT's releases and in timm by the same names."""

from .family import Family
from .timm_vit import BLOCK, EMBEDDING, LAYER, LAYERS, layer_renames

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
