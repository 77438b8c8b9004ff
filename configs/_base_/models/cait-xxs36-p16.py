# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-36/16, trained on ImageNet-1k with hard distillation.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='xxs36', drop_path_rate=0.1), head=dict(in_channels=192)
)
load_from = 'timm://cait_xxs36_224.fb_dist_in1k'
