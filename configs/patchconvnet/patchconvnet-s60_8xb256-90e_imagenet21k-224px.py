# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60, from scratch on ImageNet-21k, 224 px. Then:
# patchconvnet-s60_8xb128-100e_imagenet-384px. Nothing is validated.
# Reproduces: the recipe of PatchConvNet (Touvron's thesis, section 5.3).
# Expected: not measured; none is quoted.
# Evaluation: none.
# Cost: 3.99 GMACs, 32.23 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/patchconvnet/patchconvnet-s60_8xb256-90e_imagenet21k-224px.py 8
_base_ = [
    '../_base_/models/patchconvnet-s60.py',
    '../_base_/datasets/imagenet21k-patchconvnet_224.py',
    '../_base_/schedules/patchconvnet-in21k_90e.py',
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
