# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT M-48/16, trained on ImageNet-1k with hard distillation, of 448 px.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='m48', img_size=448, drop_path_rate=0.4),
    head=dict(in_channels=768),
)
load_from = 'timm://cait_m48_448.fb_dist_in1k'
