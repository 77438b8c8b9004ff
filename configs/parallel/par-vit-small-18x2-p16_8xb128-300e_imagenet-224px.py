# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with 18 layers of two parallel branches, from scratch on
# ImageNet-1k, 224 px.
# Reproduces: nothing; the recipe of DeiT. The paper trains with LAMB and
# binary cross-entropy.
# Expected: not measured; the paper has it as a point of a figure only. Quoted
# from it: 82.6 % top-1 for 24 layers of two branches by its own recipe.
# Evaluation: validation split, last checkpoint.
# Cost: 13.69 GMACs, 64.64 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/parallel/par-vit-small-18x2-p16_8xb128-300e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/par-vit-small-18x2-p16.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.smoothing),
    train_cfg=_base_.mixup,
)
train_dataloader = dict(batch_size=128)
