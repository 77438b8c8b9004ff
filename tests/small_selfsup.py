# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Small pre-training models: four layers, 4 x 4 patches of 16 px."""

import torch
from small_models import arch

SIDE = 64
PIXELS = dict(type='PixelReconstructionLoss', criterion='L2')
DECODERS = dict(decoder_embed_dims=12, decoder_depth=2, decoder_num_heads=3)


def encoder(**options):
    """Config of an encoder."""
    shared = dict(type='mmclca.SegmentedMAEViT', arch=arch(4), img_size=SIDE)
    return shared | options


WIDE = dict(arch(4, 24), num_heads=3)  # a teacher's architecture
ATTENTION = dict(type='mmclca.AttentionDistillation', layers=(4,))
HIDDEN = dict(type='mmclca.HiddenDistillation', layers=(0, 4))


def shuffle(batch_size, seed=0):
    """Return random patch orders, (B, 16)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(batch_size, 16, generator=generator).argsort(dim=1)


MAE = dict(
    type='MAE',
    backbone=encoder(),
    neck=dict(
        type='mmclca.CheckedMAEDecoder',
        num_patches=16,
        embed_dim=16,
        decoder_embed_dim=12,
        decoder_depth=2,
        decoder_num_heads=3,
    ),
    head=dict(type='MAEPretrainHead', norm_pix=True, loss=PIXELS),
)


def mirl(num_segments=2, mode='residual', num_layers=4, **neck):
    """Config of a MIRL."""
    return dict(
        type='mmclca.MIRL',
        backbone=encoder(num_segments=num_segments, arch=arch(num_layers)),
        neck=dict(type='mmclca.MIRLDecoders', **DECODERS, **neck),
        head=dict(type='mmclca.MIRLHead', mode=mode),
    )


def distilled(path, *distill, backbone=None, **options):
    """Config of a masked autoencoder with a teacher."""
    teacher = dict(backbone=backbone or encoder(arch=WIDE), checkpoint=path)
    options = dict(teacher=teacher, distill=distill, **options)
    return dict(MAE, type='mmclca.DistilledMAE', **options)
