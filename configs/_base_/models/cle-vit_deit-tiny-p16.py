# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLE-ViT on DeiT-Ti/16, trained on ImageNet-1k. Its training pipeline needs
# mmclca.ShuffledView.
_base_ = './_vit-base-p16.py'
model = dict(
    type='mmclca.CLEViTClassifier',
    backbone=dict(arch='deit-tiny'),
    head=dict(type='VisionTransformerClsHead', in_channels=192, init_cfg=None),
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
