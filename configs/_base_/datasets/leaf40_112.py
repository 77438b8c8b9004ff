# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# leaf40 at 112 px, see leaf40_224.py.
_base_ = './leaf40_224.py'
resize = dict(type='Resize', scale=(128, 128), interpolation='area')
load = dict(
    type='mmclca.CacheImages',
    transforms=[dict(type='LoadImageFromFile'), resize],
)
train_pipeline = [
    load,
    dict(type='RandomCrop', crop_size=112),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='CenterCrop', crop_size=112),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
