# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# EViT without CLC and CLA, keep rate 0.25.
# DeiT-Ti/16 (ImageNet-1k) on leaf40, 224 px, three training images per class.
# Reproduces: the recipe of the CLCA paper without its head and cache.
# Expected: not reported in the paper; measured in docs/results.md.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 0.48 GMACs, 5.53 M parameters.
# Command: python tools/train.py \
#   configs/clca/evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py
_base_ = './clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
model = dict(
    backbone=dict(cache=None, out_indices=-1, final_norm=True),
    head=dict(
        _delete_=True,
        type='VisionTransformerClsHead',
        num_classes=_base_.num_classes,
        in_channels=192,
        init_cfg=None,
    ),
)
