# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 of How to train your ViT? (AugReg), trained on ImageNet-21k, with
# mean and standard deviation 0.5, as in its pre-training.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(
    data_preprocessor=dict(mean=[127.5] * 3, std=[127.5] * 3),
    backbone=dict(arch='deit-small'),
    head=dict(in_channels=384),
)
load_from = 'timm://vit_small_patch16_224.augreg_in21k'
