# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLE-ViT with all tokens.
# Swin-B (ImageNet-21k, ImageNet-1k) on SoyGlobal, 448 px.
# Reproduces: the recipe of the public code for these cultivars.
# Expected: not measured here.
# Evaluation: test split, last checkpoint.
# Cost: 61.75 GMACs, 88.73 M parameters.
# Command: python tools/train.py \
#   configs/baselines/cle-vit_swin-base-w7_1xb12-200e_soyglobal-448px.py
_base_ = [
    '../_base_/models/cle-vit_swin-base-w7.py',
    '../_base_/datasets/soyglobal_448.py',
    '../_base_/datasets/leaves_two_views_448.py',
    '../_base_/schedules/cle-vit_200e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(img_size=448), head=dict(num_classes=_base_.num_classes)
)
train_dataloader = dict(batch_size=12, dataset=dict(pipeline=_base_.two_views))
