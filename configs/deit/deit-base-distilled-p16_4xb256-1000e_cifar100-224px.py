# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-B/16 with a distillation token (ImageNet-1k) on CIFAR-100, 224 px.
# Reproduces: the recipe of transfer in Touvron's thesis, section 3.7.
# Expected: not measured; quoted from the thesis: 91.3 % top-1.
# Evaluation: test split, last checkpoint.
# Cost: 17.66 GMACs, 85.95 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit/deit-base-distilled-p16_4xb256-1000e_cifar100-224px.py 4
_base_ = [
    '../_base_/models/deit-base-distilled-p16.py',
    '../_base_/datasets/cifar100-deit_224.py',
    '../_base_/schedules/deit-transfer-cifar_1000e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    # the data set brings RGB
    data_preprocessor=dict(num_classes=_base_.num_classes, to_rgb=False),
    head=dict(num_classes=_base_.num_classes, loss=_base_.loss),
    train_cfg=_base_.mixup,
)
