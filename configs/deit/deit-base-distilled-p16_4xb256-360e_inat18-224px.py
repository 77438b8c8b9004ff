# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-B/16 with a distillation token (ImageNet-1k) on iNaturalist 2018 at 224
# px.
# Reproduces: the recipe of transfer in Touvron's thesis, section 3.7.
# Expected: not measured; quoted from the thesis: 73.7 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 17.67 GMACs, 98.32 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit/deit-base-distilled-p16_4xb256-360e_inat18-224px.py 4
_base_ = [
    '../_base_/models/deit-base-distilled-p16.py',
    '../_base_/datasets/inat18-deit_224.py',
    '../_base_/schedules/deit-transfer_360e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(num_classes=_base_.num_classes, loss=_base_.loss),
    train_cfg=_base_.mixup,
)
