# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit: ResNet-50 from scratch on CIFAR-100 by its 20 coarse labels; the stem
# is that of small images.
# Reproduces: Grafit of Touvron's thesis, Table 2.4 and section 2.4.
# Expected: not measured here; quoted from the thesis: 77.7 % kNN top-1 of the
#   100 classes, mAP 55.7 %.
# Evaluation: coarse labels of the test split by the bank, last checkpoint.
# Cost: 1.32 GMACs, 68.01 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/grafit/grafit_resnet50_4xb256-600e_cifar100-coarse-32px.py 4
_base_ = [
    '../_base_/models/grafit_resnet50.py',
    '../_base_/datasets/cifar100-coarse_32.py',
    '../_base_/schedules/grafit_600e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(to_rgb=False),  # the data set brings RGB
    backbone=dict(type='ResNet_CIFAR'),
    num_views=8,
    num_classes=_base_.num_classes,
    num_images=50000,
)
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.BankHook'),
]
sync_bn = 'torch'
