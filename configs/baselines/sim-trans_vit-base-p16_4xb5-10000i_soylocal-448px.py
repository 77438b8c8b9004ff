# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# SIM-Trans with all tokens.
# ViT-B/16 (ImageNet-21k) on SoyLocal, 448 px.
# Reproduces: the recipe in the public code, for another dataset.
# Expected: not measured here.
# Evaluation: test split, last checkpoint.
# Cost: 151.80 GMACs, 89.67 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/baselines/sim-trans_vit-base-p16_4xb5-10000i_soylocal-448px.py 4
_base_ = ['../_base_/_sim-trans_448.py', '../_base_/datasets/soylocal_448.py']
model = dict(head=dict(num_classes=_base_.num_classes))
train_dataloader = dict(batch_size=5, dataset=dict(pipeline=_base_.crop.train))
val_dataloader = dict(dataset=dict(pipeline=_base_.crop.test))
test_dataloader = val_dataloader
