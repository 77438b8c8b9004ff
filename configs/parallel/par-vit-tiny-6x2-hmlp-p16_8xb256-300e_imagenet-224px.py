# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-Ti/16 with six layers of two parallel branches and the hMLP stem, from
# scratch on ImageNet-1k, 224 px. Its BatchNorms see the images of all GPUs.
# Reproduces: the paper's recipe, A2 from ResNet strikes back.
# Expected: not measured; quoted from the paper: 72.7 % top-1 for 12 plain
#   layers and the linear stem.
# Evaluation: validation split, last checkpoint.
# Cost: 1.25 GMACs, 5.62 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/parallel/par-vit-tiny-6x2-hmlp-p16_8xb256-300e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/par-vit-tiny-6x2-p16.py',
    '../_base_/datasets/imagenet-a2_224.py',
    '../_base_/schedules/a2_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(stem=dict(type='mmclca.HMLPStem', norm_cfg=dict(type='BN'))),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
sync_bn = 'torch'
load_from = None
