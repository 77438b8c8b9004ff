# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CIFAR-100 at 224 px, with the augmentation of DeiT: transfer as in Touvron's
# thesis, section 3.7; each image once an epoch.
_base_ = './imagenet_224.py'
num_classes = 100
cifar100 = dict(
    _delete_=True, type='CIFAR100', data_root='{{$MMCLCA_DATA:data}}/cifar100'
)
# it brings images, not files
train_pipeline = _base_.train_pipeline[1:]
test_pipeline = _base_.test_pipeline[1:]
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(**cifar100, split='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    dataset=dict(**cifar100, split='test', pipeline=test_pipeline)
)
test_dataloader = val_dataloader
