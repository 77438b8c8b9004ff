# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as PatchConvNet is trained on it: RandAugment of ResNet strikes
# back, no erasing; tested on the whole of the short side (the thesis is
# silent).
_base_ = './imagenet-a2_224.py'
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=224)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
