# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16, trained on ImageNet-1k. Its CLS token has no position; the
# row of zeros used for it here is learned.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(layer_scale_init_value=1e-6))
load_from = 'timm://deit3_base_patch16_224.fb_in1k'
