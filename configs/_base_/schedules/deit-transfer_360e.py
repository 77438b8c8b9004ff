# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT's and CaiT's transfer to iNaturalist 2018 and 2019 (Touvron's thesis,
# section 3.7): the recipe of the training with a tenth of its learning rate,
# 360 epochs.
_base_ = './deit_300e.py'
optim_wrapper = dict(optimizer=dict(lr=0.0001))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=360,
        warmup=5,
        start_factor=1e-6 / 0.0001,
        eta_min_ratio=1e-5 / 0.0001,
    )
]
train_cfg = dict(max_epochs=360, val_interval=10)
