# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III's fine-tuning at 224 or 384 px after a smaller size (Touvron's
# thesis, 2022, section 6.4): AdamW and cross-entropy, batches of 512.
_base_ = './deit_300e.py'
optim_wrapper = dict(optimizer=dict(lr=1e-5, weight_decay=0.1))
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=20,
        warmup=5,
        start_factor=1e-6 / 1e-5,
        eta_min_ratio=1.0,
    )
]
train_cfg = dict(max_epochs=20, val_interval=5)
auto_scale_lr = dict(base_batch_size=512)
