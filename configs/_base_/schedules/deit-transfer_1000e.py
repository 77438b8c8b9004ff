# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT's and CaiT's transfer to Cars and Flowers (Touvron's thesis, section
# 3.7): the recipe of the training with a tenth of its learning rate, 1000
# epochs.
_base_ = './deit_300e.py'
optim_wrapper = dict(optimizer=dict(lr=0.0001))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=1000,
        warmup=5,
        start_factor=1e-6 / 0.0001,
        eta_min_ratio=1e-5 / 0.0001,
    )
]
train_cfg = dict(max_epochs=1000, val_interval=10)
