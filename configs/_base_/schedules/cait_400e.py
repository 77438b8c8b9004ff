# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT's recipe (Touvron's thesis, 2022, section 3.6): DeiT's recipe with 400
# epochs. Models have the same stochastic depth in all layers.
_base_ = './deit_300e.py'
optim_wrapper = dict(optimizer=dict(lr=1e-3))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=400,
        warmup=5,
        start_factor=1e-6 / 0.001,
        eta_min_ratio=1e-5 / 0.001,
    )
]
train_cfg = dict(max_epochs=400, val_interval=10)
