# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fine-tuning as in MIRL's public code, 100 epochs: learning rate 7.5e-4 per
# 256 images at batch size 2048, layer-wise decay 0.88. The EMA weights are
# tested.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(lr=7.5e-4 * 2048 / 256),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.88),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=100,
        warmup=20,
        start_factor=0.0,
        eta_min_ratio=1e-6 / (7.5e-4 * 2048 / 256),
        convert_to_iter_based=True,
    )
]
train_cfg = dict(max_epochs=100, val_interval=10)
auto_scale_lr = dict(base_batch_size=2048)
ema = dict(type='EMAHook', momentum=2e-4, priority='ABOVE_NORMAL')
