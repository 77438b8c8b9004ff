# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit on DeiT-Ti/16, trained on ImageNet-1k, all tokens; an MLP as
# projector.
_base_ = './grafit_vit-mini-p14.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmclca.TokenReductionViT',
        arch='deit-tiny',
        img_size=224,
        patch_size=16,
        norm_cfg=dict(type='LN', eps=1e-6),
    ),
    hidden=1024,
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375]
    ),
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
