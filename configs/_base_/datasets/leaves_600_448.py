# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pipelines of TransFG and SIM-Trans: resize to a square of 600 px (bilinear),
# then crop 448 px.
resize = dict(
    type='Resize', scale=(600, 600), backend='pillow', interpolation='bilinear'
)
load = dict(
    type='mmclca.CacheImages',
    transforms=[dict(type='LoadImageFromFile'), resize],
)
crop = dict(
    train=[
        load,
        dict(type='RandomCrop', crop_size=448),
        dict(type='RandomFlip', prob=0.5, direction='horizontal'),
        dict(type='PackInputs'),
    ],
    test=[
        dict(type='LoadImageFromFile'),
        resize,
        dict(type='CenterCrop', crop_size=448),
        dict(type='PackInputs'),
    ],
)
del resize, load
