# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Two views of each image of ImageNet-1k, as in MoCo v3: the first is blurred,
# of the second a tenth, and a fifth is solarized.
_base_ = './imagenet-mae_224.py'
jitter = dict(
    type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1
)
start = [
    dict(
        type='RandomResizedCrop',
        scale=224,
        crop_ratio_range=(0.08, 1.0),
        backend='pillow',
    ),
    dict(type='RandomApply', transforms=[jitter], prob=0.8),
    dict(
        type='RandomGrayscale',
        prob=0.2,
        keep_channels=True,
        channel_weights=(0.114, 0.587, 0.2989),
    ),
]
blur = dict(
    type='GaussianBlur', magnitude_range=(0.1, 2.0), magnitude_std='inf'
)
flip = dict(type='RandomFlip', prob=0.5)
solarize = dict(type='Solarize', thr=128, prob=0.2)
views = [
    [*start, dict(**blur, prob=1.0), flip],
    [*start, dict(**blur, prob=0.1), solarize, flip],
]
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='MultiView', num_views=[1, 1], transforms=views),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=128, dataset=dict(pipeline=train_pipeline))
