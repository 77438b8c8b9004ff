# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ImageNet-1k with DeiT's pipeline: RandAugment, random erasing, and three
# views per image, so an epoch has a third of the images. Mixup and CutMix are
# in the schedules. Tests use the center crop after resizing the short side to
# int(224 / 0.875) px. The environment variable MMCLCA_DATA names the dataset
# folder; in it, imagenet/{train,val} have a folder per class.
num_classes = 1000
imagenet = dict(type='ImageNet', data_root='{{$MMCLCA_DATA:data}}/imagenet')
bgr_mean = [103.53, 116.28, 123.675]  # fills what a transform uncovers
bgr_std = [57.375, 57.12, 58.395]
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='RandomResizedCrop',
        scale=224,
        backend='pillow',
        interpolation='bicubic',
    ),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(
        type='RandAugment',
        policies='timm_increasing',
        num_policies=2,
        total_level=10,
        magnitude_level=9,
        magnitude_std=0.5,
        hparams=dict(pad_val=[104, 116, 124], interpolation='bicubic'),
    ),
    dict(
        type='RandomErasing',
        erase_prob=0.25,
        mode='rand',
        min_area_ratio=0.02,
        max_area_ratio=1 / 3,
        fill_color=bgr_mean,
        fill_std=bgr_std,
    ),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='ResizeEdge',
        scale=256,
        edge='short',
        backend='pillow',
        interpolation='bicubic',
    ),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    batch_size=256,
    num_workers=8,
    persistent_workers=True,
    drop_last=True,
    sampler=dict(type='mmclca.RepeatAugSampler', num_repeats=3),
    dataset=dict(**imagenet, split='train', pipeline=train_pipeline),
)
val_dataloader = dict(
    batch_size=256,
    num_workers=8,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(**imagenet, split='val', pipeline=test_pipeline),
)
test_dataloader = val_dataloader
val_evaluator = dict(type='Accuracy', topk=(1, 5))
test_evaluator = val_evaluator
