# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of Three things everyone should know about Vision Transformers: A2
# of ResNet strikes back with another learning rate, 4e-3 for Ti and S, 3e-3
# for B and L. Batches of 2048.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='Lamb', lr=0.004, weight_decay=0.02)
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=300,
        warmup=5,
        start_factor=1e-6 / 0.004,
        eta_min_ratio=1e-6 / 0.004,
    )
]
# targets of mixed images are one for each class in them; no smoothing
loss = dict(_delete_=True, type='mmclca.ThresholdedBCE')
mixup = dict(
    augments=[dict(type='Mixup', alpha=0.1), dict(type='CutMix', alpha=1.0)]
)
train_cfg = dict(max_epochs=300, val_interval=10)
auto_scale_lr = dict(base_batch_size=2048)
