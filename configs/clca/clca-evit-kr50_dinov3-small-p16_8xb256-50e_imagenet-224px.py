# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5.
# ViT-S/16 of DINOv3 on ImageNet-1k, 224 px.
# Reproduces: no paper; DeiT III's recipe for weights with a new head.
# Expected: not measured.
# Evaluation: validation split, last checkpoint.
# Cost: 2.53 GMACs, 22.36 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/clca/clca-evit-kr50_dinov3-small-p16_8xb256-50e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/clca-evit_dinov3-small-p16.py',
    '../_base_/datasets/imagenet-src_224.py',
    '../_base_/schedules/deit3-in21k-in1k_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
