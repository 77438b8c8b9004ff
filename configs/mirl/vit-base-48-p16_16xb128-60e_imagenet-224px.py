# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of 48 layers fine-tuned on ImageNet-1k after MIRL.
# FILE is a pre-trained checkpoint, own or released.
# Reproduces: the recipe in MIRL's public code.
# Expected: not measured; quoted from the paper: 85.3 % top-1 after 300 epochs
#   of pre-training.
# Evaluation: validation split, last checkpoint.
# Cost: 69.92 GMACs, 341.73 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mirl/vit-base-48-p16_16xb128-60e_imagenet-224px.py 16 \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/vit-base-48-p16.py',
    '../_base_/datasets/imagenet-mae-finetune_224.py',
    '../_base_/schedules/mirl-finetune_60e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    backbone=dict(drop_path_rate=0.0),
    train_cfg=_base_.mixup,
)
custom_hooks = [*_base_.custom_hooks, _base_.ema]
