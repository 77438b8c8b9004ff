# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Vision transformers of timm, whose names DeiT's, MAE's, DINO's, DINOv2's
and MoCo v3's releases have, too."""

from .family import POS_EMBED, Family

BLOCK, LAYER = r'blocks\.(\d+)', r'backbone.layers.\1'
EMBEDDING = (
    (r'cls_token$', 'backbone.cls_token'),
    (r'dist_token$', 'backbone.dist_token'),
    (r'pos_embed$', POS_EMBED),
    (r'(reg_token|register_tokens)$', 'backbone.register_tokens'),
    (r'patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'norm_pre\.', 'backbone.pre_norm.'),
)


def layer_renames(block: str, layer: str, gamma1: str = 'attn.gamma1'):
    """The renames of a layer of attention and FFN."""
    return (
        (rf'{block}\.norm([12])\.', rf'{layer}.ln\2.'),
        (rf'{block}\.attn\.', rf'{layer}.attn.'),
        (rf'{block}\.mlp\.fc1\.', rf'{layer}.ffn.layers.0.0.'),
        (rf'{block}\.mlp\.fc2\.', rf'{layer}.ffn.layers.1.'),
        (rf'{block}\.(ls1\.gamma|gamma_1)$', rf'{layer}.{gamma1}.weight'),
        (rf'{block}\.(ls2\.gamma|gamma_2)$', rf'{layer}.ffn.gamma2.weight'),
    )


LAYERS = layer_renames(BLOCK, LAYER)
HEAD = (
    (r'norm\.', 'backbone.ln1.'),
    (r'fc_norm\.', 'backbone.ln2.'),
    (r'pre_logits\.fc\.', 'head.layers.pre_logits.'),
    (r'head_dist\.', 'head.layers.head_dist.'),
    (r'head\.', 'head.layers.head.'),
)
RENAMES = (*EMBEDDING, *LAYERS, *HEAD)
VIT = Family(
    mark=r'blocks\.\d+\.|patch_embed\.proj\.',
    renames=RENAMES,
    left_out=r'decoder_|mask_token$',
)
