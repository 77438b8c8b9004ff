# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLC without CLA, with EViT, keep rate 0.1.
# DeiT III-B/16 (ImageNet-1k) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its head (CLA).
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 25.17 GMACs, 86.33 M parameters.
# Command: python tools/train.py \
#   configs/clca/clc-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clca-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(
    backbone=dict(out_indices=-1, final_norm=True),
    head=dict(
        _delete_=True,
        type='VisionTransformerClsHead',
        num_classes=_base_.num_classes,
        in_channels=768,
        init_cfg=None,
    ),
)
