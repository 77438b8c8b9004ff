# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of 24 layers fine-tuned on ImageNet-1k after MIRL.
# FILE is a pre-trained checkpoint, own or released.
# Reproduces: MIRL with the recipe for ViT-S-54, as its own is not public.
# Expected: not measured; quoted from the paper: 84.7 % top-1 after 300 epochs
#   of pre-training.
# Evaluation: validation split, last checkpoint.
# Cost: 35.02 GMACs, 171.62 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mirl/vit-base-24-p16_16xb128-100e_imagenet-224px.py 16 \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/vit-base-24-p16.py',
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
