# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-24/16, trained on ImageNet-1k with hard distillation: 24 layers with
# talking heads over the patches, then two in which CLS alone changes.
_base_ = './_linear-classifier.py'
model = dict(
    type='mmclca.TokenReductionClassifier',
    backbone=dict(
        type='mmclca.CaiT',
        arch='xxs24',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.05,
    ),
    head=dict(in_channels=192),
)
load_from = 'timm://cait_xxs24_224.fb_dist_in1k'
