# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Unlabeled leaf images at 112 px, from a folder and its subfolders: crops of
# 20 to 100 %, flips. Images are decoded and resized once, if the disk has room
# for all of them. The environment variable MMCLCA_DATA names the dataset
# folder; generate 5,000 leaves by
# python tools/dataset_converters/synthetic_leaves.py \
#   data/unlabelled_leaves --classes 50 --per-class 100 --size 128
load = dict(
    type='mmclca.CacheImages',
    transforms=[
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(128, 128), interpolation='area'),
    ],
)
train_pipeline = [
    load,
    dict(
        type='RandomResizedCrop',
        scale=112,
        crop_ratio_range=(0.2, 1.0),
        interpolation='bicubic',
    ),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=64,
    num_workers=1,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    collate_fn=dict(type='default_collate'),
    dataset=dict(
        type='CustomDataset',
        data_root='{{$MMCLCA_DATA:data}}/unlabelled_leaves',
        with_label=False,
        pipeline=train_pipeline,
    ),
)
