# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Fine-tuning of MIRL's public code, 100 epochs: a learning rate of 7.5e-4 for
# each 256 images of a batch, here of 2048, 0.88 of it from layer to layer, and
# an average of the weights (EMA) that is tested.
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
