# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16 on ImageNet-1k, 224 px, after ImageNet-21k: the last checkpoint
# of deit3-base-p16_8xb256-90e_imagenet21k-224px.
# Reproduces: the recipe of DeiT III (Touvron's thesis, Table 6.1).
# Expected: not measured; quoted from the thesis: 85.2 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 17.57 GMACs, 86.59 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-base-p16_8xb256-50e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/deit3-base-p16.py',
    '../_base_/datasets/imagenet-src_224.py',
    '../_base_/schedules/deit3-in21k-in1k_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(drop_path_rate=0.15),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = (
    'work_dirs/deit3-base-p16_8xb256-90e_imagenet21k-224px/epoch_90.pth'
)
