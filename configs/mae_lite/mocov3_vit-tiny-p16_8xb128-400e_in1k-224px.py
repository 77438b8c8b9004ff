# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MoCo v3 of ViT-Ti/16 of 12 heads on ImageNet-1k, 224 px.
# Reproduces: MoCo v3 as in MAE-Lite's public code.
# Expected: not measured.
# Evaluation: none; see the fine-tuning.
# Cost: of whole images 1.25 GMACs, 50.41 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mae_lite/mocov3_vit-tiny-p16_8xb128-400e_in1k-224px.py 8
_base_ = [
    '../_base_/models/mocov3_vit-tiny-p16.py',
    '../_base_/datasets/imagenet-mocov3_224.py',
    '../_base_/schedules/mocov3_400e.py',
    '../_base_/pretraining_runtime.py',
]
custom_hooks = []
sync_bn = 'torch'
