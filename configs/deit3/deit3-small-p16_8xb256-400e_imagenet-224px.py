# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-S/16, from scratch on ImageNet-1k, 224 px. Tests the released
# weights as DeiT III does: tools/test.py, this config and the file.
# Reproduces: the recipe of DeiT III (Touvron's thesis, Table 6.1).
# Expected: not measured; quoted from the thesis: 80.4 % top-1, 81.4 % for
#   the released weights, of 800 epochs.
# Evaluation: validation split, last checkpoint.
# Cost: 4.60 GMACs, 22.06 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-small-p16_8xb256-400e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/deit3-small-p16.py',
    '../_base_/datasets/imagenet-deit3_224.py',
    '../_base_/schedules/deit3_400e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
