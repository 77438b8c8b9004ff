# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 800 epochs of MIRL, with the cosine of its public code.
_base_ = './mae_400e.py'
param_scheduler = [
    _base_.warmup,
    dict(
        type='CosineAnnealingLR',
        T_max=760,
        begin=40,
        end=800,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(max_epochs=800)
