# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 of 54 layers fine-tuned on ImageNet-1k after MIRL.
# FILE is a pre-trained checkpoint, own or released.
# Reproduces: the recipe in MIRL's public code.
# Expected: not measured; quoted from the paper: 84.4 % top-1 after 300 epochs
#   of pre-training, 84.8 % after 800.
# Evaluation: validation split, last checkpoint.
# Cost: 20.50 GMACs, 96.58 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mirl/vit-small-54-p16_16xb128-100e_imagenet-224px.py 16 \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/vit-small-54-p16.py',
    '../_base_/datasets/imagenet-mae-finetune_224.py',
    '../_base_/schedules/mirl-finetune_100e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
custom_hooks = [*_base_.custom_hooks, _base_.ema]
