# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit: ResNet-50 from scratch on iNaturalist 2018 by family.
# Reproduces: Grafit of Touvron's thesis, Table 2.13 and section 2.4.
# Expected: not measured here; quoted from the thesis, kNN top-1: families
#   81.8 %, genera 64.6 %, species 51.2 %.
# Evaluation: families of the test split by the bank, last checkpoint.
# Cost: 4.21 GMACs, 68.03 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/grafit/grafit_resnet50_4xb256-600e_inat18-family-224px.py 4
_base_ = [
    '../_base_/models/grafit_resnet50.py',
    '../_base_/datasets/inat18-family_224.py',
    '../_base_/schedules/grafit_600e.py',
    '../_base_/default_runtime.py',
]
model = dict(num_classes=_base_.num_classes, num_images=437513)
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.BankHook'),
]
sync_bn = 'torch'
