# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# TransFG on DeiT-Ti/16, trained on ImageNet-1k; without dropout.
_base_ = './transfg_vit-base-p16.py'
model = dict(
    backbone=dict(arch='deit-tiny', drop_rate=0.0), head=dict(in_channels=192)
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
