# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16, from scratch on ImageNet-21k, 224 px. Then:
# deit3-base-p16_8xb256-50e_imagenet-224px. Nothing is validated.
# Reproduces: the recipe of DeiT III (Touvron's thesis, Table 6.1).
# Expected: not measured; none is quoted.
# Evaluation: none.
# Cost: 17.58 GMACs, 100.56 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-base-p16_8xb256-90e_imagenet21k-224px.py 8
_base_ = [
    '../_base_/models/deit3-base-p16.py',
    '../_base_/datasets/imagenet21k_224.py',
    '../_base_/schedules/deit3-in21k_90e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(num_classes=_base_.num_classes, loss=_base_.loss),
    train_cfg=_base_.mixup,
)
val_dataloader = val_evaluator = val_cfg = None
test_dataloader = test_evaluator = test_cfg = None
load_from = None
