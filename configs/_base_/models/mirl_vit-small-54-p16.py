# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-S/16 of 54 layers, six segments of 9 layers; decoders of
# one layer, as in the public code; the paper says two.
_base_ = './mirl_vit-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(embed_dims=384, num_layers=54, feedforward_channels=1536),
        num_segments=6,
    ),
    neck=dict(decoder_embed_dims=384, decoder_depth=1, decoder_num_heads=12),
)
