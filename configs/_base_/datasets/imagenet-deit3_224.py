# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as DeiT III is trained on it (Touvron's thesis, section 6.2):
# 3-Augment of random resized crops; tested on the whole of the short side.
_base_ = './imagenet-cait_224.py'
# exactly one of the three for each image, then colours; no RandAugment, no
# erasing
three_augment = [
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(
        type='RandomChoice',
        transforms=[
            [
                dict(
                    type='RandomGrayscale',
                    prob=1.0,
                    keep_channels=True,
                    channel_weights=(0.114, 0.587, 0.299),  # of BGR
                )
            ],
            [dict(type='Solarize', thr=128, prob=1.0)],
            [
                dict(
                    type='GaussianBlur',
                    magnitude_range=(0.1, 2.0),
                    magnitude_std='inf',  # uniform
                    prob=1.0,
                )
            ],
        ],
    ),
    dict(type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3),
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
