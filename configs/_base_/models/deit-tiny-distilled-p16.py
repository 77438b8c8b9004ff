# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16 with a distillation token, trained on ImageNet-1k with a RegNetY
# teacher.
_base_ = './deit-base-distilled-p16.py'
model = dict(backbone=dict(arch='deit-tiny'), head=dict(in_channels=192))
load_from = 'timm://deit_tiny_distilled_patch16_224.fb_in1k'
