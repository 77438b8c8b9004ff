# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Images are resized to a square of int(224 / 0.875) px, whatever their shape.
_base_ = './leaves_bs32.py'
resize = dict(
    type='Resize', scale=(256, 256), backend='pillow', interpolation='bicubic'
)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='RandomCrop', crop_size=224),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
