# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-S/16, trained on ImageNet-1k.
_base_ = './deit3-base-p16.py'
model = dict(
    backbone=dict(arch='deit-small', drop_path_rate=0.0),
    head=dict(in_channels=384),
)
load_from = 'timm://deit3_small_patch16_224.fb_in1k'
