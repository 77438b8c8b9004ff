# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# SIM-Trans on DeiT-Ti/16, trained on ImageNet-1k; without overlap and dropout.
_base_ = './sim-trans_vit-base-p16.py'
model = dict(
    backbone=dict(arch='deit-tiny', stride=16, drop_rate=0.0),
    head=dict(in_channels=192),
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
