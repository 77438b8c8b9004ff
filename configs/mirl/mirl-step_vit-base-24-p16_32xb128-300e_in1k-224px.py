# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-B/16 of 24 layers, whose learning rate falls in steps.
# Reproduces: the study of the length of training in MIRL.
# Expected: not measured.
# Evaluation: none; see the fine-tuning.
# Cost: of whole images 35.02 GMACs, 204.24 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mirl/mirl-step_vit-base-24-p16_32xb128-300e_in1k-224px.py 32
_base_ = [
    '../_base_/models/mirl_vit-base-24-p16.py',
    '../_base_/datasets/imagenet-mae_224.py',
    '../_base_/schedules/mirl-step_300e.py',
    '../_base_/pretraining_runtime.py',
]
train_dataloader = dict(batch_size=128)
