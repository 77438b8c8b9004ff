# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# EViT without CLC and CLA, keep rate 0.1.
# DeiT III-B/16 (ImageNet-1k) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its head and cache.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 24.79 GMACs, 86.33 M parameters.
# Command: python tools/train.py \
#   configs/clca/evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clc-evit-kr10_deit3-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(backbone=dict(cache=None))
