# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5.
# ViT-B/16 (ImageNet-21k) on Cotton80, 448 px.
# Reproduces: the CLCA paper's recipe, at a keep rate not in Table I.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 38.77 GMACs, 86.39 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py
_base_ = [
    '../_base_/models/clca-evit_vit-base-p16.py',
    '../_base_/datasets/cotton80_448.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(img_size=448, reducer=dict(keep_rate=0.5)),
    head=dict(num_classes=_base_.num_classes),
)
