# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k for PatchConvNet's fine-tuning at 384 px: each image once an
# epoch.
_base_ = './imagenet-patchconvnet_224.py'
train_pipeline = _base_.train_pipeline
train_pipeline[1].scale = 384
test_pipeline = _base_.test_pipeline
test_pipeline[1].scale = 384
test_pipeline[2].crop_size = 384
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline),
)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
