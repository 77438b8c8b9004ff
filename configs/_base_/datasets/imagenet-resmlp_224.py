# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as ResMLP is trained on it, as DeiT; tested on 224 of int(224 /
# 0.9) px of the short side, as in its public code.
_base_ = './imagenet_224.py'
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='ResizeEdge',
        scale=248,
        edge='short',
        backend='pillow',
        interpolation='bicubic',
    ),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
