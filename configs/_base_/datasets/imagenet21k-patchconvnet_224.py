# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-21k as PatchConvNet is trained on it: the images of
# imagenet21k_224.py, augmented as in imagenet-patchconvnet_224.py, each once
# an epoch.
_base_ = './imagenet-patchconvnet_224.py'
num_classes = 19167
train_dataloader = dict(
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
    dataset=dict(
        _delete_=True,
        type='CustomDataset',
        data_root='{{$MMCLCA_DATA:data}}/imagenet21k',
        data_prefix='train',
        pipeline=_base_.train_pipeline,
    ),
)
