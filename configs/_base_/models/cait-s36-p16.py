# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT S-36/16, trained on ImageNet-1k with hard distillation, of 384 px.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='s36', img_size=384, drop_path_rate=0.2),
    head=dict(in_channels=384),
)
load_from = 'timm://cait_s36_384.fb_dist_in1k'
