# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Training pipeline of Grafit on leaves: four views of an image, each cut,
# flipped, changed by RandAugment and erased.
four_views = [
    dict(type='LoadImageFromFile'),
    dict(
        type='MultiView',
        num_views=4,
        transforms=[
            [
                dict(
                    type='RandomResizedCrop',
                    scale=224,
                    crop_ratio_range=(0.3, 1.0),
                    interpolation='bicubic',
                ),
                dict(type='RandomFlip', prob=0.5, direction='horizontal'),
                dict(
                    type='RandAugment',
                    hparams=dict(pad_val=[255, 255, 255]),
                    policies='timm_increasing',
                    num_policies=2,
                    total_level=10,
                    magnitude_level=9,
                    magnitude_std=0.5,
                ),
                dict(type='RandomErasing', erase_prob=0.25),
            ]
        ],
    ),
    dict(type='PackInputs'),
]
