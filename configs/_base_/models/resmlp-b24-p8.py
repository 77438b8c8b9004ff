# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-B24/8, trained on ImageNet-1k with hard distillation.
_base_ = './resmlp-s12-p16.py'
model = dict(
    backbone=dict(arch='b24', patch_size=8), head=dict(in_channels=768)
)
load_from = 'timm://resmlp_big_24_224.fb_distilled_in1k'
