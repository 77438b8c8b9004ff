# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Shared settings for plain ViTs: ViT-B/16 with a linear classifier, no token
# reduction, DeiT's initialization.
_base_ = './_vit-base-p16.py'
model = dict(
    backbone=dict(init_cfg=dict(type='mmclca.DeiTInit')),
    head=dict(
        type='VisionTransformerClsHead',
        init_cfg=dict(type='TruncNormal', layer='Linear', std=0.02),
    ),
)
