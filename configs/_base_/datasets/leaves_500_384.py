# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pipelines of FFVT: a square of 500 px, bilinear, of which
# 384 px are taken.
resize = dict(
    type='Resize', scale=(500, 500), backend='pillow', interpolation='bilinear'
)
load = dict(
    type='mmclca.CacheImages',
    transforms=[dict(type='LoadImageFromFile'), resize],
)
crop_of_500 = dict(
    train=[
        load,
        dict(type='RandomCrop', crop_size=384),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
        dict(type='PackInputs'),
    ],
    test=[
        dict(type='LoadImageFromFile'),
        resize,
        dict(type='CenterCrop', crop_size=384),
        dict(type='PackInputs'),
    ],
)
del resize, load
