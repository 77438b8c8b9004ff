# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of PatchConvNet on ImageNet-1k (Touvron's thesis, 2022, section
# 5.3) for S; wider models have a weight decay of 0.05. Batches of 2048.
_base_ = './resmlp_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.003, weight_decay=0.01)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=400,
        warmup=5,
        start_factor=1e-6 / 0.003,
        eta_min_ratio=1e-5 / 0.003,
    )
]
train_cfg = dict(max_epochs=400, val_interval=10)
auto_scale_lr = dict(base_batch_size=2048)
