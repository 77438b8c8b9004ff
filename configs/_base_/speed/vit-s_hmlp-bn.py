# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with the hMLP stem with BatchNorm.
_base_ = './vit-s_linear.py'
model = dict(backbone=dict(stem=dict(type='mmclca.HMLPStem')))
