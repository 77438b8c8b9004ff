# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pre-training of MAE, MAE-Lite and MIRL: AdamW with a learning rate of 1.5e-4
# for each 256 images of a batch, here of 4096; 40 epochs of warm-up, then a
# cosine to zero.
optim_wrapper = dict(
    type='AmpOptimWrapper',
    loss_scale='dynamic',
    optimizer=dict(
        type='AdamW',
        lr=1.5e-4 * 4096 / 256,
        betas=(0.9, 0.95),
        weight_decay=0.05,
    ),
    # biases and norms; CLS and mask tokens decay, as in the public code
    paramwise_cfg=dict(flat_decay_mult=0.0),
)
warmup = dict(
    type='LinearLR', start_factor=1e-4, end=40, convert_to_iter_based=True
)
param_scheduler = [
    warmup,
    dict(
        type='CosineAnnealingLR',
        T_max=360,
        begin=40,
        end=400,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(by_epoch=True, max_epochs=400)
auto_scale_lr = dict(base_batch_size=4096)
