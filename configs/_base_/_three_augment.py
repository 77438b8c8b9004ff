# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The steps of 3-Augment (DeiT III; Touvron's thesis, section 6.2): exactly one
# of the first three for each image, then colours.
_three_augment = dict(
    gray=dict(
        type='RandomGrayscale',
        prob=1.0,
        keep_channels=True,
        channel_weights=(0.114, 0.587, 0.299),  # of BGR
    ),
    solarize=dict(type='Solarize', thr=128, prob=1.0),
    blur=dict(
        type='GaussianBlur',
        magnitude_range=(0.1, 2.0),
        magnitude_std='inf',  # uniform
        prob=1.0,
    ),
    jitter=dict(
        type='ColorJitter', brightness=0.3, contrast=0.3, saturation=0.3
    ),
)
