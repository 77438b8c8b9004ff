# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Shared settings for MAE and MIRL: images, masks, initial weights.
model = dict(
    data_preprocessor=dict(
        type='SelfSupDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.SegmentedMAEViT',
        img_size=224,
        patch_size=16,
        mask_ratio=0.75,
    ),
    init_cfg=[
        dict(type='Xavier', layer='Linear', distribution='uniform'),
        dict(type='Constant', layer='LayerNorm', val=1.0, bias=0.0),
    ],
)
