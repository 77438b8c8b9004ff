# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60, from scratch on ImageNet-1k, 224 px.
# Reproduces: the recipe of PatchConvNet (Touvron's thesis, section 5.3).
# Expected: not measured; quoted from the thesis: 82.1 % top-1.
# Evaluation: validation split, the whole of the short side, last checkpoint.
# Cost: 3.98 GMACs, 25.23 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/patchconvnet/patchconvnet-s60_8xb256-400e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/patchconvnet-s60.py',
    '../_base_/datasets/imagenet-patchconvnet_224.py',
    '../_base_/schedules/patchconvnet_400e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
