# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-S/16 with a distillation token (ImageNet-1k) on Oxford 102 Flowers, 224
# px.
# Reproduces: the recipe of transfer in Touvron's thesis, section 3.7.
# Expected: not measured; the thesis has 98.8 % for the distilled
#   DeiT-B.
# Evaluation: test split, last checkpoint.
# Cost: 4.63 GMACs, 21.74 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit/deit-small-distilled-p16_4xb256-1000e_flowers-224px.py 4
_base_ = [
    '../_base_/models/deit-small-distilled-p16.py',
    '../_base_/datasets/flowers-deit_224.py',
    '../_base_/schedules/deit-transfer_1000e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(num_classes=_base_.num_classes, loss=_base_.loss),
    train_cfg=_base_.mixup,
)
