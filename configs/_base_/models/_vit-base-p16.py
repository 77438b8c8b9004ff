# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Shared settings for all models: ViT-B/16 at 224 px, ImageNet-1k
# normalization.
model = dict(
    type='mmclca.TokenReductionClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.TokenReductionViT',
        arch='base',
        img_size=224,
        patch_size=16,
        norm_cfg=dict(type='LN', eps=1e-6),
    ),
    head=dict(num_classes=1000, in_channels=768),
)
