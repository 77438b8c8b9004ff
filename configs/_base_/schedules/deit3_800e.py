# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III's longer training (Touvron's thesis, 2022, section 6.4): more weight
# decay; models have 0.1 more stochastic depth.
_base_ = './deit3_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.003, weight_decay=0.05)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=800,
        warmup=5,
        start_factor=1e-6 / 0.003,
        eta_min_ratio=1e-5 / 0.003,
    )
]
train_cfg = dict(max_epochs=800, val_interval=10)
