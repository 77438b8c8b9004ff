# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k without its labels, as masked autoencoders see it: crops of 20 to
# 100 % of an image, flips. The environment variable MMCLCA_DATA names the
# dataset folder.
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='RandomResizedCrop',
        scale=224,
        crop_ratio_range=(0.2, 1.0),
        backend='pillow',
        interpolation='bicubic',
    ),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=512,
    num_workers=8,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    collate_fn=dict(type='default_collate'),
    dataset=dict(
        type='ImageNet',
        data_root='{{$MMCLCA_DATA:data}}/imagenet',
        split='train',
        pipeline=train_pipeline,
    ),
)
