# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ToMe, keep rate 0.5, in the patch layers: it needs no CLS, which enters after
# them. Without the line of the reducer, all patches are kept.
# CaiT XXS-24/16 (ImageNet-1k, distilled) on leaf40, 224 px, three training
# images per class.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 1.18 GMACs, 11.77 M parameters.
# Command: python tools/train.py \
#   configs/cait/tome-kr50_cait-xxs24-p16_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/cait-xxs24-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(
        reducer=dict(type='mmclca.ToMe', keep_rate=0.5), reduce_at=(6, 12, 18)
    ),
    head=dict(num_classes=_base_.num_classes),
)
