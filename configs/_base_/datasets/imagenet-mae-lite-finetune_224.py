# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite's improved fine-tuning on ImageNet-1k: RandAugment of magnitude 10,
# no erasing, each image once an epoch.
_base_ = './imagenet_224.py'
train_pipeline = _base_.train_pipeline
train_pipeline[3].update(magnitude_level=10)
train_pipeline.pop(4)  # random erasing
train_dataloader = dict(
    batch_size=128,
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(pipeline=train_pipeline),
)
