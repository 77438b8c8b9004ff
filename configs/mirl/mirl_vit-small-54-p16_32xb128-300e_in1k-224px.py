# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-S/16 of 54 layers on ImageNet-1k, 224 px, 75 % of the
# patches masked.
# Reproduces: MIRL, the recipe of its public code.
# Expected: not measured.
# Evaluation: none; see the fine-tuning.
# Cost: of whole images 20.50 GMACs, 113.67 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mirl/mirl_vit-small-54-p16_32xb128-300e_in1k-224px.py 32
_base_ = [
    '../_base_/models/mirl_vit-small-54-p16.py',
    '../_base_/datasets/imagenet-mae_224.py',
    '../_base_/schedules/mirl_300e.py',
    '../_base_/pretraining_runtime.py',
]
train_dataloader = dict(batch_size=128)
