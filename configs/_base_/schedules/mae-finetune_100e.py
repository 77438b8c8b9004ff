# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE's own fine-tuning as MAE-Lite's public code has it: the same with the
# augmentation of DeiT, in 100 epochs.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(lr=1e-3 * 1024 / 256),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.85),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=100,
        warmup=5,
        start_factor=0.0,
        eta_min_ratio=1e-6 / (1e-3 * 1024 / 256),
        convert_to_iter_based=True,
    )
]
train_cfg = dict(max_epochs=100, val_interval=10)
