# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-B/16, two segments of six layers, decoders of two layers.
model = dict(
    type='mmclca.MIRL',
    data_preprocessor=dict(
        type='SelfSupDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.SegmentedMAEViT',
        arch=dict(
            embed_dims=768,
            num_layers=12,
            num_heads=12,
            feedforward_channels=3072,
        ),
        img_size=224,
        patch_size=16,
        mask_ratio=0.75,
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
    init_cfg=[
        dict(type='Xavier', layer='Linear', distribution='uniform'),
        dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
    ],
)
