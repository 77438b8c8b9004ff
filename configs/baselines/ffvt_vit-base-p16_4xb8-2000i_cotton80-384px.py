# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# FFVT with all tokens.
# ViT-B/16 (ImageNet-21k) on Cotton80, 384 px.
# Reproduces: the recipe of the public code for these cultivars.
# Expected: not measured here.
# Evaluation: test split, last checkpoint.
# Cost: 51.88 GMACs, 86.15 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/baselines/ffvt_vit-base-p16_4xb8-2000i_cotton80-384px.py 4
_base_ = [
    '../_base_/_ffvt_384.py',
    '../_base_/datasets/cotton80_448.py',
    '../_base_/schedules/_ffvt_2000i.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
train_dataloader = dict(batch_size=8, dataset=dict(pipeline=_base_.crop.train))
val_dataloader = dict(dataset=dict(pipeline=_base_.crop.test))
test_dataloader = val_dataloader
