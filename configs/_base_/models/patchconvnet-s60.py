# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60, trained on ImageNet-1k: a column of convolutions at one
# sixteenth of the image's sides, and one attention that averages the patches.
_base_ = './_linear-classifier.py'
model = dict(
    backbone=dict(
        type='mmclca.PatchConvNet',
        arch='s60',
        img_size=224,
        drop_path_rate=0.15,
    ),
    head=dict(in_channels=384),
)
load_from = 'https://dl.fbaipublicfiles.com/deit/s60_224_1k.pth'
