# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Vision transformers of parallel branches: DeiT's releases, in which the
parts of branch b > 0 end in its number, and timm's ``ParallelThingsBlock``."""

from .family import Family
from .timm_vit import BLOCK, EMBEDDING, HEAD

BRANCH = r'backbone.layers.\1.branches.'
FIRST = (
    (rf'{BLOCK}\.norm([12])\.', rf'{BRANCH}0.ln\2.'),
    (rf'{BLOCK}\.attn\.', rf'{BRANCH}0.attn.'),
    (rf'{BLOCK}\.mlp\.fc1\.', rf'{BRANCH}0.ffn.layers.0.0.'),
    (rf'{BLOCK}\.mlp\.fc2\.', rf'{BRANCH}0.ffn.layers.1.'),
    (rf'{BLOCK}\.gamma_1$', rf'{BRANCH}0.attn.gamma1.weight'),
    (rf'{BLOCK}\.gamma_2$', rf'{BRANCH}0.ffn.gamma2.weight'),
)
NUMBERED = (
    (rf'{BLOCK}\.norm([12])(\d+)\.', rf'{BRANCH}\3.ln\2.'),
    (rf'{BLOCK}\.attn(\d+)\.', rf'{BRANCH}\2.attn.'),
    (rf'{BLOCK}\.mlp(\d+)\.fc1\.', rf'{BRANCH}\2.ffn.layers.0.0.'),
    (rf'{BLOCK}\.mlp(\d+)\.fc2\.', rf'{BRANCH}\2.ffn.layers.1.'),
    (rf'{BLOCK}\.gamma_1_(\d+)$', rf'{BRANCH}\2.attn.gamma1.weight'),
    (rf'{BLOCK}\.gamma_2_(\d+)$', rf'{BRANCH}\2.ffn.gamma2.weight'),
)
TIMM = (
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
    renames=(*EMBEDDING, *FIRST, *NUMBERED, *TIMM, *HEAD),
)
