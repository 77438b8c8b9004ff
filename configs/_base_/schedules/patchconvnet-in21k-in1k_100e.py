# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet on ImageNet-1k after ImageNet-21k (Touvron's thesis, 2022,
# section 5.3): batches of 1024.
_base_ = './patchconvnet_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.0005, weight_decay=0.01)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=100,
        warmup=5,
        start_factor=1e-6 / 0.0005,
        eta_min_ratio=1e-5 / 0.0005,
    )
]
train_cfg = dict(max_epochs=100, val_interval=10)
auto_scale_lr = dict(base_batch_size=1024)
