# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-B/16, trained on ImageNet-1k.
_base_ = './clca-evit_vit-base-p16.py'
load_from = 'timm://deit_base_patch16_224.fb_in1k'
