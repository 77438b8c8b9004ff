# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.7.
# DeiT III-B/16 (ImageNet-1k) on Cotton80, 448 px.
# Reproduces: Table I of the CLCA paper, "CLCA (70%)" on Cotton.
# Expected: 67.8 % top-1, averaged over three seeds, backbone not named;
#   50.9 GFLOPs (multiply-accumulates).
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 50.86 GMACs, 86.40 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr70_deit3-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clca-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(backbone=dict(reducer=dict(keep_rate=0.7)))
