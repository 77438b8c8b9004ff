# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pre-training of BEiT: AdamW with a learning rate of 1.5e-3 for batches of
# 2048, gradients clipped at 3, 10 epochs of warm-up, a cosine to 1e-5.
_base_ = './mae_400e.py'
optim_wrapper = dict(
    optimizer=dict(lr=1.5e-3, betas=(0.9, 0.999)),
    clip_grad=dict(max_norm=3.0),
    paramwise_cfg=dict(
        custom_keys={
            '.cls_token': dict(decay_mult=0.0),
            '.pos_embed': dict(decay_mult=0.0),
        }
    ),
)
param_scheduler = [
    dict(
        type='LinearLR', start_factor=1e-4, end=10, convert_to_iter_based=True
    ),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        T_max=290,
        begin=10,
        end=300,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(max_epochs=300)
auto_scale_lr = dict(base_batch_size=2048)
find_unused_parameters = True
