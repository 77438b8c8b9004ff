# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-24/16, from scratch on ImageNet-1k, 224 px, by the recipe of DeiT.
# Reproduces: nothing; CaiT itself trains for 400 epochs. Tests the released
# weights as CaiT does: tools/test.py, this config and the file.
# Expected: not measured; quoted from Touvron's thesis, 400 epochs: 77.6 %
#   top-1 without a teacher, 78.4 % with one.
# Evaluation: validation split, last checkpoint.
# Cost: 2.53 GMACs, 11.96 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/cait/cait-xxs24-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/cait-xxs24-p16.py',
    '../_base_/datasets/imagenet-deit3_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.smoothing),
    train_cfg=_base_.mixup,
)
load_from = None
