# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ATC without CLC and CLA, keep rate 0.5.
# ViT-B/16 (ImageNet-21k) on SoyGene, 448 px.
# Reproduces: nothing published: the recipe of the CLCA paper with a newer
#   method, without its head and cache.
# Expected: not reported.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 38.15 GMACs, 87.10 M parameters.
# Command: python tools/train.py \
#   configs/clca/atc-kr50_vit-base-p16_1xb32-50e_soygene-448px.py
_base_ = './evit-kr50_vit-base-p16_1xb32-50e_soygene-448px.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.ATC')))
