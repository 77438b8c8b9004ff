# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A small parallel layer, and its definition as a loop."""

import torch
from mmpretrain.models.backbones.vision_transformer import (
    TransformerEncoderLayer,
)

from mmclca.models.layers.parallel import ParallelLayer


def plain(**settings):
    """Return an mmpretrain layer with 2 heads and 16 channels."""
    norm = dict(type='LN', eps=1e-6)
    return TransformerEncoderLayer(16, 2, 32, norm_cfg=norm, **settings)


def parallel(branches, **settings):
    """Return a float64 parallel layer with random parameters."""
    layer = ParallelLayer(plain(**settings), branches).double()
    with torch.no_grad():
        for param in layer.parameters():
            param.add_(0.2 * torch.randn_like(param))
    return layer


def tokens():
    """Return random tokens (3, 7, 16)."""
    return torch.randn(3, 7, 16, dtype=torch.float64)


def looped(branches, x):
    """Compute a parallel layer by definition: sums of branch outputs."""
    x = x + sum(one.attn(one.ln1(x)) for one in branches)
    return x + sum(
        one.ffn.gamma2(one.ffn.layers(one.ln2(x))) for one in branches
    )
