# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with 18 layers of two parallel branches, from scratch on
# ImageNet-1k, 224 px.
# Reproduces: the paper's recipe, A2 from ResNet strikes back.
# Expected: not measured; the paper has it as a point of a figure only. Quoted
#   from it: 82.6 % top-1 for 24 layers of two branches.
# Evaluation: validation split, last checkpoint.
# Cost: 13.69 GMACs, 64.64 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/parallel/par-vit-small-18x2-p16_8xb256-300e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/par-vit-small-18x2-p16.py',
    '../_base_/datasets/imagenet-a2_224.py',
    '../_base_/schedules/a2_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
