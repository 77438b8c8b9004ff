# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-L/16, trained on ImageNet-1k. For training on ImageNet-21k the
# paper has drop_path_rate=0.3.
_base_ = './deit3-base-p16.py'
model = dict(
    backbone=dict(arch='large', drop_path_rate=0.4),
    head=dict(in_channels=1024),
)
load_from = 'timm://deit3_large_patch16_224.fb_in1k'
