# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CIFAR-100 at 224 px: MAE-Lite's transfer, crops and flips alone.
_base_ = './imagenet_224.py'
num_classes = 100
cifar100 = dict(
    _delete_=True, type='CIFAR100', data_root='{{$MMCLCA_DATA:data}}/cifar100'
)
resize = dict(
    type='Resize', scale=224, backend='pillow', interpolation='bicubic'
)
train_pipeline = [*_base_.train_pipeline[1:3], dict(type='PackInputs')]
test_pipeline = [resize, dict(type='PackInputs')]
train_dataloader = dict(
    batch_size=128,
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(**cifar100, split='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    dataset=dict(**cifar100, split='test', pipeline=test_pipeline)
)
test_dataloader = val_dataloader
