# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT's fine-tuning at another size, 384 px after 224 (from its public
# code): constant learning rate 5e-6 per 512 images, weight decay 1e-8, full
# augmentation. Configs
# turn stochastic depth off. CaiT's, too (thesis, section 3.6).
_base_ = './deit_300e.py'
optim_wrapper = dict(optimizer=dict(lr=5e-6, weight_decay=1e-8))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=30,
        warmup=5,
        start_factor=1e-6 / 5e-6,
        eta_min_ratio=1.0,
    )
]
train_cfg = dict(max_epochs=30, val_interval=10)
auto_scale_lr = dict(base_batch_size=512)
