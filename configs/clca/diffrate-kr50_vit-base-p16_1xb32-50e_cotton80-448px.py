# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DiffRate without CLC and CLA, keep rate 0.5.
# ViT-B/16 (ImageNet-21k) on Cotton80, 448 px.
# Reproduces: nothing published: the recipe of the CLCA paper with a newer
#   method, without its head and cache.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 38.17 GMACs, 86.31 M parameters.
# Command: python tools/train.py \
#   configs/clca/diffrate-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py
_base_ = './evit-kr50_vit-base-p16_1xb32-50e_cotton80-448px.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.DiffRate')))
