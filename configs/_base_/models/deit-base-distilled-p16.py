# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-B/16 with a distillation token, trained on ImageNet-1k with a RegNetY
# teacher. At test, the logits of its two classifiers are averaged.
_base_ = './_deit-base-p16.py'
model = dict(
    backbone=dict(dist_token=True, drop_path_rate=0.1),
    head=dict(
        _delete_=True,
        type='mmclca.DistilledHead',
        num_classes=1000,
        in_channels=768,
    ),
)
load_from = 'timm://deit_base_distilled_patch16_224.fb_in1k'
