# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as ResNet strikes back trains on it (A2): a weaker RandAugment
# than DeiT's, no erasing; tested on 224 of int(224 / 0.95) px of the short
# side.
_base_ = './imagenet_224.py'
train_pipeline = _base_.train_pipeline
train_pipeline[3].update(magnitude_level=7)
train_pipeline.pop(4)  # random erasing
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=235)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
