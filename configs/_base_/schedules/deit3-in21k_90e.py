# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III on ImageNet-21k (Touvron's thesis, 2022, Table 6.1): cross-entropy
# with smoothing, CutMix alone. The public code has a learning rate of 1e-3.
_base_ = './deit3_400e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.003, weight_decay=0.02)
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
loss = dict(
    _delete_=True,
    type='LabelSmoothLoss',
    label_smooth_val=0.1,
    mode='original',
)
mixup = dict(augments=[dict(type='CutMix', alpha=1.0)])
train_cfg = dict(max_epochs=90, val_interval=10)
