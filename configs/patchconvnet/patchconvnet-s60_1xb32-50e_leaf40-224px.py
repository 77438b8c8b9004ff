# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60 (ImageNet-1k) on leaf40, 224 px, three training images per
# class.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 3.98 GMACs, 24.86 M parameters.
# Command: python tools/train.py \
#   configs/patchconvnet/patchconvnet-s60_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/patchconvnet-s60.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
