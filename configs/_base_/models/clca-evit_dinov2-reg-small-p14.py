# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/14 of DINOv2 with four registers, trained on LVD-142M without labels.
_base_ = './clca-evit_dinov2-small-p14.py'
model = dict(backbone=dict(num_registers=4))
load_from = 'timm://vit_small_patch14_reg4_dinov2.lvd142m'
