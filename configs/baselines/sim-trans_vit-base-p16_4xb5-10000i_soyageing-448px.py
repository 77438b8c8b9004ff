# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# SIM-Trans with all tokens.
# ViT-B/16 (ImageNet-21k) on SoyAgeing, 448 px.
# Reproduces: the recipe in the public code, for another dataset.
# Expected: 34.8 % top-1 in Table I in the CLCA paper, by an unreported recipe;
#   not measured here.
# Evaluation: test split, last checkpoint.
# Cost: 151.80 GMACs, 89.66 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/baselines/sim-trans_vit-base-p16_4xb5-10000i_soyageing-448px.py 4
_base_ = ['../_base_/_sim-trans_448.py', '../_base_/datasets/soyageing_448.py']
model = dict(head=dict(num_classes=_base_.num_classes))
train_dataloader = dict(batch_size=5, dataset=dict(pipeline=_base_.crop.train))
val_dataloader = dict(dataset=dict(pipeline=_base_.crop.test))
test_dataloader = val_dataloader
