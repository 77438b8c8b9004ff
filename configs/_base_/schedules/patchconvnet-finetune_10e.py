# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet's fine-tuning at another size (Touvron's thesis, 2022, section
# 5.3): batches of 1024. Models have 0.1 less stochastic depth.
_base_ = './patchconvnet_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=1e-5, weight_decay=0.01)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=10,
        warmup=5,
        start_factor=1e-6 / 1e-5,
        eta_min_ratio=1.0,
    )
]
train_cfg = dict(max_epochs=10, val_interval=1)
auto_scale_lr = dict(base_batch_size=1024)
