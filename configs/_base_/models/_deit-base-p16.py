# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# What the plain ViTs here share: ViT-B/16 with a linear classifier, all tokens
# kept, weights drawn as in DeiT.
_base_ = './_vit-base-p16.py'
model = dict(
    backbone=dict(init_cfg=dict(type='mmclca.DeiTInit')),
    head=dict(
        type='VisionTransformerClsHead',
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
