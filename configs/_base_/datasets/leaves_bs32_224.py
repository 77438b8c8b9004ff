# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Images are resized to a square of int(224 / 0.875) px, ignoring their shape.
_base_ = './leaves_bs32.py'
resize = dict(
    type='Resize', scale=(256, 256), backend='pillow', interpolation='bicubic'
)
# decoded and resized once, if the disk has room for all images
load = dict(
    type='mmclca.CacheImages',
    transforms=[dict(type='LoadImageFromFile'), resize],
)
train_pipeline = [
    load,
    dict(type='RandomCrop', crop_size=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
val_pipeline = [
    load,
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
