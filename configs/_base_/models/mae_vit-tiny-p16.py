# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite: ViT-Ti/16 of 12 heads, a decoder of one layer.
model = dict(
    type='MAE',
    data_preprocessor=dict(
        type='SelfSupDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.SegmentedMAEViT',
        arch=dict(
            embed_dims=192,
            num_layers=12,
            num_heads=12,
            feedforward_channels=768,
        ),
        img_size=224,
        patch_size=16,
        mask_ratio=0.75,
    ),
    neck=dict(
        type='MAEPretrainDecoder',
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
    init_cfg=[
        dict(type='Xavier', layer='Linear', distribution='uniform'),
        dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
    ],
)
