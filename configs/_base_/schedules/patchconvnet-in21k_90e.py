# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet's training on ImageNet-21k (Touvron's thesis, 2022, section
# 5.3).
_base_ = './patchconvnet_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.003, weight_decay=0.01)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=90,
        warmup=5,
        start_factor=1e-6 / 0.003,
        eta_min_ratio=1e-5 / 0.003,
    )
]
train_cfg = dict(max_epochs=90, val_interval=10)
