# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE's fine-tuning on ImageNet-1k: the augmentation of DeiT, each image once
# an epoch.
_base_ = './imagenet_224.py'
train_dataloader = dict(
    batch_size=128,
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
)
