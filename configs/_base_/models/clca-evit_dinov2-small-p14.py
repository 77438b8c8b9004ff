# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/14 of DINOv2, trained on LVD-142M without labels.
_base_ = './clca-evit_dinov2-base-p14.py'
model = dict(backbone=dict(arch='dinov2-small'), head=dict(in_channels=384))
load_from = 'timm://vit_small_patch14_dinov2.lvd142m'
