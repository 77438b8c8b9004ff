# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.25.
# DeiT-Ti/16 (ImageNet-1k) on leaf40, 224 px, three training images per class.
# Reproduces: the CLCA paper's recipe, on a dataset not used in the paper.
# Expected: not reported in the paper; measured in docs/results.md.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 0.51 GMACs, 5.54 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/clca-evit_deit-tiny-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(reducer=dict(keep_rate=0.25)),
    head=dict(num_classes=_base_.num_classes),
)
