# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16, trained on ImageNet-21k and then on ImageNet-1k.
_base_ = './clca-evit_deit3-base-p16.py'
load_from = 'timm://deit3_base_patch16_224.fb_in22k_ft_in1k'
