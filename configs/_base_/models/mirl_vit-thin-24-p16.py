# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of a thin and deep network, 128 channels in 24 layers, four segments.
_base_ = './mirl_vit-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=128,
            num_layers=24,
            num_heads=4,
            feedforward_channels=512,
        ),
        num_segments=4,
    ),
    neck=dict(decoder_embed_dims=64, decoder_depth=1, decoder_num_heads=4),
)
