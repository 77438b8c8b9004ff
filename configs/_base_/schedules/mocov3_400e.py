# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MoCo v3 of ViT-Ti, as MAE-Lite's public code trains it: batches of 1024, a
# learning rate of 1.5e-4 for each 256 images, more weight decay than MAE.
_base_ = './mae_400e.py'
optim_wrapper = dict(
    optimizer=dict(
        lr=1.5e-4 * 1024 / 256, betas=(0.9, 0.999), weight_decay=0.1
    ),
    paramwise_cfg=dict(_delete_=True),
)
auto_scale_lr = dict(base_batch_size=1024)
find_unused_parameters = True  # the projection of the momentum encoder
