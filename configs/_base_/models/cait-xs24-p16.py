# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XS-24/16, trained on ImageNet-1k with hard distillation, of 384 px.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='xs24', img_size=384, drop_path_rate=0.05),
    head=dict(in_channels=288),
)
load_from = 'timm://cait_xs24_384.fb_dist_in1k'
