# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III on ImageNet-1k after ImageNet-21k (Touvron's thesis, 2022, Table
# 6.1).
_base_ = './deit3-in21k_90e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.0003, weight_decay=0.02)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=50,
        warmup=5,
        start_factor=1e-6 / 0.0003,
        eta_min_ratio=1e-5 / 0.0003,
    )
]
train_cfg = dict(max_epochs=50, val_interval=10)
