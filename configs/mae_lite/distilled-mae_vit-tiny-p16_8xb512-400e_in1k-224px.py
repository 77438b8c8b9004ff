# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite with attention distillation from the last layer of MAE-Base.
# Reproduces: section 5 of the paper of MAE-Lite.
# Expected: not measured.
# Evaluation: none; see the fine-tuning.
# Cost: of whole images 1.25 GMACs, 5.75 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mae_lite/distilled-mae_vit-tiny-p16_8xb512-400e_in1k-224px.py 8
_base_ = [
    '../_base_/models/distilled-mae_vit-tiny-p16.py',
    '../_base_/datasets/imagenet-mae-lite_224.py',
    '../_base_/schedules/mae_400e.py',
    '../_base_/pretraining_runtime.py',
]
