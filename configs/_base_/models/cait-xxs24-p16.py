# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-24/16, trained on ImageNet-1k with hard distillation: 24 layers with
# talking heads over the patches, then two in which CLS alone changes.
model = dict(
    type='mmclca.TokenReductionClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.CaiT',
        arch='xxs24',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.05,
    ),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=192,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
load_from = 'timm://cait_xxs24_224.fb_dist_in1k'
