# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-S/16 with a distillation token, trained on ImageNet-1k with a RegNetY
# teacher.
_base_ = './deit-base-distilled-p16.py'
model = dict(backbone=dict(arch='deit-small'), head=dict(in_channels=384))
load_from = 'timm://deit_small_distilled_patch16_224.fb_in1k'
