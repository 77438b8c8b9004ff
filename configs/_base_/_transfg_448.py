# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# TransFG settings for all datasets, from its public code.
_base_ = [
    './models/transfg_vit-base-p16.py',
    './datasets/leaves_600_448.py',
    './schedules/_transfg_10000i.py',
    './default_runtime_iters.py',
]
model = dict(backbone=dict(img_size=448))
