# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# FFVT on DeiT-Ti/16, trained on ImageNet-1k; without dropout.
_base_ = './ffvt_vit-base-p16.py'
model = dict(
    backbone=dict(arch='deit-tiny', drop_rate=0.0),
    head=dict(in_channels=192, init_cfg=None),
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
