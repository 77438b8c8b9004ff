# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S36/16, trained on ImageNet-1k with hard distillation.
_base_ = './resmlp-s12-p16.py'
model = dict(backbone=dict(arch='s36'))
load_from = 'timm://resmlp_36_224.fb_distilled_in1k'
