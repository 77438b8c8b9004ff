# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-21k as DeiT III is trained on it: as imagenet-src_224.py. The winter
# 2021 release has 19,167 classes; in imagenet21k/train there is a folder a
# class.
_base_ = './imagenet-src_224.py'
num_classes = 19167
train_dataloader = dict(
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root='{{$MMCLCA_DATA:data}}/imagenet21k',
        data_prefix='train',
        pipeline=_base_.train_pipeline,
    )
)
