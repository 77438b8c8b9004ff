# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16, trained on ImageNet-1k.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(arch='deit-tiny'), head=dict(in_channels=192))
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
