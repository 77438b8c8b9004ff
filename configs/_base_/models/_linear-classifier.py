# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# What the networks share that give one vector an image: a linear classifier
# of it, images normalized as for ImageNet-1k.
model = dict(
    type='ImageClassifier',
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
