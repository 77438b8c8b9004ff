# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as DeiT III is trained on it after ImageNet-21k (Touvron's
# thesis, section 6.2): 3-Augment of simple random crops, of images resized to
# their short side and reflected by 4 px at each side; each image once.
_base_ = './imagenet-deit3_224.py'
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='ResizeEdge',
        scale=224,
        edge='short',
        backend='pillow',
        interpolation='bicubic',
    ),
    # mmpretrain's RandomCrop(padding=4) fills with zeros in every mode
    dict(type='NumpyToPIL', to_rgb=True),
    dict(
        type='torchvision/RandomCrop',
        size=224,
        padding=4,
        padding_mode='reflect',
    ),
    dict(type='PILToNumpy', to_bgr=True),
    *_base_.three_augment,
]
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline),
)
