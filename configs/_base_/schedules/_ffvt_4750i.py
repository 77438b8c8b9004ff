# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of FFVT's public code for soy cultivars of the local set: that for
# cotton, longer.
_base_ = './_ffvt_2000i.py'
param_scheduler = [
    dict(type='LinearLR', start_factor=0.002, by_epoch=False, end=500),
    dict(
        type='CosineAnnealingLR',
        by_epoch=False,
        begin=500,
        T_max=4250,
        eta_min=0.0,
    ),
]
train_cfg = dict(max_iters=4750)
