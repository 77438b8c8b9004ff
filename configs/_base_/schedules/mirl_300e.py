# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 300 epochs of MIRL, with the cosine of its public code.
_base_ = './mae_400e.py'
param_scheduler = [
    _base_.warmup,
    dict(
        type='CosineAnnealingLR',
        T_max=260,
        begin=40,
        end=300,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(max_epochs=300)
