# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# As in MAE-Lite's public code: crops of 8 to 100 %. The interpolation is
# bicubic here, and random per image there.
_base_ = './imagenet-mae_224.py'
train_pipeline = _base_.train_pipeline
train_pipeline[1].update(crop_ratio_range=(0.08, 1.0))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
