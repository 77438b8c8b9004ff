# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16 (ImageNet-1k, distilled) on leaf40, 224 px, three training
# images per class.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 3.01 GMACs, 14.98 M parameters.
# Command: python tools/train.py \
#   configs/resmlp/resmlp-s12-p16_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/resmlp-s12-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
