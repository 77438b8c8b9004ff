# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# EViT without CLC and CLA, keep rate 0.5.
# ViT-B/16 (ImageNet-21k) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its head and cache.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 38.21 GMACs, 86.31 M parameters.
# Command: python tools/train.py \
#   configs/clca/evit-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py
_base_ = [
    '../_base_/models/evit_vit-base-p16.py',
    '../_base_/datasets/cotton80_448.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(img_size=448, reducer=dict(keep_rate=0.5)),
    head=dict(num_classes=_base_.num_classes),
)
