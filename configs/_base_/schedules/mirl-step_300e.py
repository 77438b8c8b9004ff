# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# 300 epochs of MIRL whose learning rate falls to a tenth after 90 and 95 % of
# them, as in its study of the length of training: a run can be made longer.
_base_ = './mae_400e.py'
param_scheduler = [
    _base_.warmup,
    # milestones count from begin: epochs 270 and 285
    dict(type='MultiStepLR', milestones=[230, 245], gamma=0.1, begin=40),
]
train_cfg = dict(max_epochs=300)
