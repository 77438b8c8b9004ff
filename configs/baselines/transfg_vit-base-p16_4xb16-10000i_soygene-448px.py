# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# TransFG with all tokens.
# ViT-B/16 (ImageNet-21k) on SoyGene, 448 px.
# Reproduces: the recipe in the public code, for another dataset.
# Expected: not measured here.
# Evaluation: test split, last checkpoint.
# Cost: 139.53 GMACs, 87.55 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/baselines/transfg_vit-base-p16_4xb16-10000i_soygene-448px.py 4
_base_ = ['../_base_/_transfg_448.py', '../_base_/datasets/soygene_448.py']
model = dict(head=dict(num_classes=_base_.num_classes))
train_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=_base_.crop.train)
)
val_dataloader = dict(dataset=dict(pipeline=_base_.crop.test))
test_dataloader = val_dataloader
