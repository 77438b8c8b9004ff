# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Training pipeline of CLE-ViT: two views of an image, the second one erased
# and shuffled.
two_views = [
    dict(type='LoadImageFromFile'),
    dict(
        type='mmclca.ShuffledView',
        transforms=[
            dict(
                type='RandomResizedCrop',
                scale=448,
                crop_ratio_range=(0.67, 1.0),
                backend='pillow',
                interpolation='bilinear',
            ),
            dict(type='ColorJitter', brightness=0.3),
            dict(
                type='Rotate',
                magnitude_range=(0, 15),
                magnitude_std='inf',
                prob=1.0,
                pad_val=0,
            ),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
        ],
    ),
    dict(type='PackInputs'),
]
