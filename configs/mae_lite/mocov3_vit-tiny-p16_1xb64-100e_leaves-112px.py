# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MoCo v3 of ViT-Ti/16 of 12 heads on unlabeled leaves, 112 px.
# Reproduces: nothing.
# Expected: docs/results/pretraining.md, 40 minutes each.
# Evaluation: none; configs/sweeps/pretraining.py fine-tunes the checkpoint.
# Cost: of whole images 0.28 GMACs, 50.35 M parameters.
# Command: python tools/train.py \
#   configs/mae_lite/mocov3_vit-tiny-p16_1xb64-100e_leaves-112px.py
_base_ = [
    '../_base_/models/mocov3_vit-tiny-p16.py',
    '../_base_/datasets/leaves-unlabelled_112.py',
    '../_base_/schedules/pretraining-leaves_100e.py',
    '../_base_/pretraining_runtime.py',
]
custom_hooks = []
crop = dict(type='RandomResizedCrop', scale=112)
jitter = dict(
    type='ColorJitter', brightness=0.4, contrast=0.4, saturation=0.2, hue=0.1
)
start = [
    crop,
    dict(type='RandomApply', transforms=[jitter], prob=0.8),
    dict(
        type='RandomGrayscale',
        prob=0.2,
        keep_channels=True,
        channel_weights=(0.114, 0.587, 0.2989),
    ),
]
flip = dict(type='RandomFlip', prob=0.5)
blur = dict(
    type='GaussianBlur', magnitude_range=(0.1, 2.0), magnitude_std='inf'
)
views = [
    [*start, dict(**blur, prob=1.0), flip],
    [
        *start,
        dict(**blur, prob=0.1),
        dict(type='Solarize', thr=128, prob=0.2),
        flip,
    ],
]
train_pipeline = [
    _base_.load,
    dict(type='MultiView', num_views=[1, 1], transforms=views),
    dict(type='PackInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
model = dict(backbone=dict(img_size=112))
