# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# FFVT settings for all datasets, from its public code.
_base_ = [
    './models/ffvt_vit-base-p16.py',
    './datasets/leaves_500_384.py',
    './default_runtime_iters.py',
]
model = dict(backbone=dict(img_size=384))
