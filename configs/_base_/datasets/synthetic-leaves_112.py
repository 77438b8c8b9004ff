# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Synthetic leaves of eight cultivars, see
# tools/dataset_converters/synthetic_leaves.py. The environment variable
# MMCLCA_DATA names the dataset folder.
_base_ = './leaves_bs32.py'
num_classes = 8
data_root = '{{$MMCLCA_DATA:data}}/synthetic_leaves'
leaves = dict(
    type='CustomDataset',
    data_root=data_root,
    classes=f'{data_root}/classes.txt',
)
resize = dict(type='Resize', scale=(128, 128), interpolation='area')
# decoded and resized once, if the disk has room for all images
load = dict(
    type='mmclca.CacheImages',
    transforms=[dict(type='LoadImageFromFile'), resize],
)
train_pipeline = [
    load,
    dict(type='RandomCrop', crop_size=112),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
val_pipeline = [
    load,
    dict(type='CenterCrop', crop_size=112),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    resize,
    dict(type='CenterCrop', crop_size=112),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    num_workers=1,
    dataset=dict(**leaves, ann_file='train.txt', pipeline=train_pipeline),
)
val_dataloader = dict(
    num_workers=1,
    dataset=dict(**leaves, ann_file='val.txt', pipeline=val_pipeline),
)
test_dataloader = dict(
    num_workers=1,
    dataset=dict(**leaves, ann_file='test.txt', pipeline=test_pipeline),
)
