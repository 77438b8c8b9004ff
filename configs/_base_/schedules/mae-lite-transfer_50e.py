# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite's transfer to CIFAR-100: SGD without weight decay, batch size 512,
# learning rate 0.1 (0.03 for other datasets), layer-wise decay 0.75, gradients
# clipped at norm 1.
_base_ = './deit_300e.py'
optim_wrapper = dict(
    optimizer=dict(
        _delete_=True, type='SGD', lr=0.1, momentum=0.9, weight_decay=0.0
    ),
    constructor='LearningRateDecayOptimWrapperConstructor',
    paramwise_cfg=dict(layer_decay_rate=0.75),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=50,
        warmup=10,
        start_factor=0.0,
        convert_to_iter_based=True,
    )
]
loss = dict(_delete_=True, type='CrossEntropyLoss')
train_cfg = dict(max_epochs=50, val_interval=10)
auto_scale_lr = dict(base_batch_size=512)
