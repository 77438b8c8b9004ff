# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-S/16, trained on ImageNet-1k.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(arch='deit-small'), head=dict(in_channels=384))
load_from = 'timm://deit_small_patch16_224.fb_in1k'
