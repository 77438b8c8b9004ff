# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.1.
# DeiT III-B/16 (ImageNet-21k) on SoyGene, 448 px.
# Reproduces: a point of Fig. 1 of the CLCA paper, which does not specify
#   the DeiT III weights.
# Expected: not reported as a number; the text gives 61 to 81 % top-1 for all
#   keep rates and both image sizes of the figure.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 25.17 GMACs, 87.99 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr10_deit3-in21k-base-p16_1xb32-50e_soygene-448px.py
_base_ = [
    '../_base_/models/clca-evit_deit3-in21k-base-p16.py',
    '../_base_/datasets/soygene_448.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(img_size=448, reducer=dict(keep_rate=0.1)),
    head=dict(num_classes=_base_.num_classes),
)
