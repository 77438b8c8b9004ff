# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLC without CLA, with EViT, keep rate 0.7.
# DeiT III-B/16 (ImageNet-1k) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its head (CLA).
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 50.86 GMACs, 86.33 M parameters.
# Command: python tools/train.py \
#   configs/clca/clc-evit-kr70_deit3-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clc-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(backbone=dict(reducer=dict(keep_rate=0.7)))
