# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-B/16, two segments of six layers, decoders of two layers.
_base_ = ['_masked-autoencoder.py']
model = dict(
    type='mmclca.MIRL',
    backbone=dict(
        arch=dict(
            embed_dims=768,
            num_layers=12,
            num_heads=12,
            feedforward_channels=3072,
        ),
        num_segments=2,
    ),
    neck=dict(
        type='mmclca.MIRLDecoders',
        decoder_embed_dims=512,
        decoder_depth=2,
        decoder_num_heads=16,
        did='first',
    ),
    head=dict(type='mmclca.MIRLHead', mode='residual'),
)
