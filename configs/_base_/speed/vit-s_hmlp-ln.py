# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with the hMLP stem with LayerNorm.
_base_ = './vit-s_linear.py'
model = dict(
    backbone=dict(
        stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='LN2d', eps=1e-6))
    )
)
