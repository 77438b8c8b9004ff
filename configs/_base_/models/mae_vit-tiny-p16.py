# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite: ViT-Ti/16 of 12 heads, a decoder of one layer.
_base_ = ['_masked-autoencoder.py']
model = dict(
    type='MAE',
    backbone=dict(
        arch=dict(
            embed_dims=192,
            num_layers=12,
            num_heads=12,
            feedforward_channels=768,
        )
    ),
    neck=dict(
        type='mmclca.CheckedMAEDecoder',
        num_patches=196,
        patch_size=16,
        embed_dim=192,
        decoder_embed_dim=96,
        decoder_depth=1,
        decoder_num_heads=3,
    ),
    head=dict(
        type='MAEPretrainHead',
        norm_pix=True,
        patch_size=16,
        loss=dict(type='PixelReconstructionLoss', criterion='L2'),
    ),
)
