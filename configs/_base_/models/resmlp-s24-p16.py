# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S24/16, trained on ImageNet-1k with hard distillation.
_base_ = './resmlp-s12-p16.py'
model = dict(backbone=dict(arch='s24'))
load_from = 'timm://resmlp_24_224.fb_distilled_in1k'
