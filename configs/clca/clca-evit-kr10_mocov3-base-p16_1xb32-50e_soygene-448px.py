# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.1.
# MoCo v3 ViT-B/16 (ImageNet-1k) on SoyGene, 448 px.
# Reproduces: one run in the CLCA paper's grid.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 25.17 GMACs, 87.97 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr10_mocov3-base-p16_1xb32-50e_soygene-448px.py
_base_ = [
    '../_base_/models/clca-evit_mocov3-base-p16.py',
    '../_base_/datasets/soygene_448.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(img_size=448, reducer=dict(keep_rate=0.1)),
    head=dict(num_classes=_base_.num_classes),
)
