# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# EViT without CLC and CLA, keep rate 0.5.
# ViT-B/16 (ImageNet-21k) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its head and cache.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 38.21 GMACs, 86.31 M parameters.
# Command: python tools/train.py \
#   configs/clca/evit-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clca-evit-kr10_vit-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(
    backbone=dict(
        reducer=dict(keep_rate=0.5),
        cache=None,
        out_indices=-1,
        final_norm=True,
    ),
    head=dict(
        _delete_=True,
        type='VisionTransformerClsHead',
        num_classes=_base_.num_classes,
        in_channels=768,
        init_cfg=None,
    ),
)
