# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Linear classifier on one feature vector per image, with ImageNet-1k
# normalization: shared settings.
model = dict(
    type='mmclca.DistilledClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
