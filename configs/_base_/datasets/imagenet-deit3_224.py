# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as DeiT III is trained on it (Touvron's thesis, section 6.2):
# 3-Augment of random resized crops; tested on the whole of the short side.
_base_ = ['./imagenet-cait_224.py', '../_three_augment.py']
# no RandAugment, no erasing
_gray = _base_._three_augment.gray
_blur = _base_._three_augment.blur
_solarize = _base_._three_augment.solarize
three_augment = [
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='RandomChoice', transforms=[[_gray], [_solarize], [_blur]]),
    _base_._three_augment.jitter,
    dict(type='PackInputs'),
]
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='RandomResizedCrop',
        scale=224,
        backend='pillow',
        interpolation='bicubic',
    ),
    *three_augment,
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
