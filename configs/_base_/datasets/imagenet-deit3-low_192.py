# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k for DeiT III before its fine-tuning at 224 px.
_base_ = './imagenet-deit3_224.py'
train_pipeline = _base_.train_pipeline
train_pipeline[1].scale = 192
test_pipeline = _base_.test_pipeline
test_pipeline[1].scale = 192
test_pipeline[2].crop_size = 192
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
