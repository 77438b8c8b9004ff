# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP's recipe (Touvron's thesis, 2022, section 4.3): DeiT's recipe with
# LAMB and 400 epochs. mmpretrain's LAMB clips gradients at norm 1.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.005, weight_decay=0.2)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=400,
        warmup=5,
        start_factor=1e-6 / 0.005,
        eta_min_ratio=1e-5 / 0.005,
    )
]
train_cfg = dict(max_epochs=400, val_interval=10)
