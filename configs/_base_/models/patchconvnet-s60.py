# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60, trained on ImageNet-1k: a column of convolutions at one
# sixteenth of the image's sides, and one attention that averages the patches.
model = dict(
    type='ImageClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.PatchConvNet',
        arch='s60',
        img_size=224,
        drop_path_rate=0.15,
    ),
    head=dict(
        type='LinearClsHead',
        num_classes=1000,
        in_channels=384,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
load_from = 'https://dl.fbaipublicfiles.com/deit/s60_224_1k.pth'
