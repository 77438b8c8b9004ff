# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite's improved fine-tuning: AdamW with 1e-3 for each 256 images of a
# batch, here of 1024; a learning rate for each layer, 0.85 of that of the one
# after it (0.75 after MoCo v3); Mixup of 0.2, no CutMix, no smoothing.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(lr=1e-3 * 1024 / 256),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.85),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=300,
        warmup=5,
        start_factor=0.0,
        eta_min_ratio=1e-6 / (1e-3 * 1024 / 256),
        convert_to_iter_based=True,
    )
]
mixup = dict(_delete_=True, augments=[dict(type='Mixup', alpha=0.2)])
loss = dict(_delete_=True, type='CrossEntropyLoss', use_soft=True)
train_cfg = dict(max_epochs=300, val_interval=10)
