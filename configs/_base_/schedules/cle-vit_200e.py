# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of CLE-ViT's public code: AdamW with learning rate 1e-3 per
# 512 images at batch size 12, five times larger for the head; 20 warm-up
# epochs, then linear decay; gradients clipped. Half precision: tools/train.py
# --amp, on a GPU.
optim_wrapper = dict(
    optimizer=dict(type='AdamW', lr=1e-3 * 12 / 512, weight_decay=0.05),
    clip_grad=dict(max_norm=5.0),
    paramwise_cfg=dict(
        flat_decay_mult=0.0,
        custom_keys={
            'relative_position_bias_table': dict(decay_mult=0.0),
            'head': dict(lr_mult=5.0),
            'head.fc.bias': dict(lr_mult=5.0, decay_mult=0.0),
        },
    ),
)
param_scheduler = [
    dict(
        type='LinearLR', start_factor=1e-3, end=20, convert_to_iter_based=True
    ),
    dict(
        type='LinearLR',
        start_factor=1.0,
        end_factor=0.01,
        begin=20,
        end=200,
        convert_to_iter_based=True,
    ),
]
train_cfg = dict(by_epoch=True, max_epochs=200, val_interval=10)
val_cfg = {}
test_cfg = {}
