# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CIFAR-100 with its 20 coarse labels, eight views of an image in training. The
# environment variable MMCLCA_DATA names the dataset folder.
num_classes = 20
cifar = dict(
    type='mmclca.CoarseCIFAR100', data_root='{{$MMCLCA_DATA:data}}/cifar100'
)
eight_views = [
    dict(
        type='MultiView',
        num_views=8,
        transforms=[
            [
                dict(type='RandomCrop', crop_size=32, padding=4),
                dict(type='RandomFlip', prob=0.5, direction='horizontal'),
                dict(
                    type='RandAugment',
                    policies='timm_increasing',
                    num_policies=2,
                    total_level=10,
                    magnitude_level=9,
                    magnitude_std=0.5,
                ),
                dict(type='RandomErasing', erase_prob=0.25),
            ]
        ],
    ),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=256,
    num_workers=8,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(**cifar, split='train', pipeline=eight_views),
)
val_dataloader = dict(
    batch_size=256,
    num_workers=4,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(**cifar, split='test', pipeline=[dict(type='PackInputs')]),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
