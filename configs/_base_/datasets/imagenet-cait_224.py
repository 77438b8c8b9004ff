# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k as CaiT is trained on it, as DeiT; tested on the whole of the
# short side.
_base_ = './imagenet_224.py'
test_pipeline = _base_.test_pipeline
test_pipeline[1].update(scale=224)
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
