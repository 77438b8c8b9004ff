# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLA without CLC, with EViT, keep rate 0.1.
# CLIP ViT-B/16 (LAION-2B) on Cotton80, 448 px.
# Reproduces: the recipe of the CLCA paper without its cache (CLC).
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 24.80 GMACs, 86.38 M parameters.
# Command: python tools/train.py \
#   configs/clca/cla-evit-kr10_clip-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './clca-evit-kr10_clip-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(backbone=dict(cache=None))
