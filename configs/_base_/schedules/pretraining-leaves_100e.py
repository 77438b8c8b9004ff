# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pre-training on a few thousand images on a CPU: AdamW, batch size 64, a
# twentieth of the epochs for warm-up, cosine decay to zero. For another length
# change max_epochs, T_max and the end of the warm-up.
optim_wrapper = dict(
    optimizer=dict(
        type='AdamW', lr=1e-3, betas=(0.9, 0.95), weight_decay=0.05, fused=True
    ),
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
param_scheduler = [
    dict(
        type='mmclca.WarmupCosineLR',
        T_max=100,
        warmup=5,
        convert_to_iter_based=True,
    )
]
train_cfg = dict(by_epoch=True, max_epochs=100)
