# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16, trained on ImageNet-1k with hard distillation: no attention, a
# linear layer over the patches in its place, for images of this size alone.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.ResMLP',
        arch='s12',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.1,
    ),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=384,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
load_from = 'timm://resmlp_12_224.fb_distilled_in1k'
