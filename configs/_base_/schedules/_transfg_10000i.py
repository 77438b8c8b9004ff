# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The recipe of the public codes of TransFG and SIM-Trans: SGD, 500 steps of
# warm-up, a cosine to 0, gradients clipped. They train in half precision:
# tools/train.py --amp, on a GPU. It counts iterations, which a sweep does not.
optim_wrapper = dict(
    optimizer=dict(type='SGD', lr=0.03, momentum=0.9, weight_decay=0.0),
    clip_grad=dict(max_norm=1.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.002, by_epoch=False, end=500),
    dict(
        type='CosineAnnealingLR',
        by_epoch=False,
        begin=500,
        T_max=9500,
        eta_min=0.0,
    ),
]
train_cfg = dict(by_epoch=False, max_iters=10000, val_interval=1000)
val_cfg = {}
test_cfg = {}
