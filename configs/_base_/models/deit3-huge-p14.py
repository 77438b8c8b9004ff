# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-H/14, trained on ImageNet-1k.
_base_ = './deit3-base-p16.py'
model = dict(
    backbone=dict(arch='huge', patch_size=14, drop_path_rate=0.5),
    head=dict(in_channels=1280),
)
load_from = 'timm://deit3_huge_patch14_224.fb_in1k'
