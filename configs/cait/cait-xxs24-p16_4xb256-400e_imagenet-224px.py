# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-24/16, from scratch on ImageNet-1k, 224 px. With a teacher, as the
# released weights: ../_base_/teachers/regnety-160.py, as DeiT's config has it.
# Tests these as CaiT does: tools/test.py, this config and the file.
# Reproduces: the recipe of CaiT (Touvron's thesis, section 3.6).
# Expected: not measured; quoted from the thesis: 77.6 % top-1 without a
#   teacher, 78.4 % with one.
# Evaluation: validation split, last checkpoint.
# Cost: 2.53 GMACs, 11.96 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/cait/cait-xxs24-p16_4xb256-400e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/cait-xxs24-p16.py',
    '../_base_/datasets/imagenet-cait_224.py',
    '../_base_/schedules/cait_400e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
