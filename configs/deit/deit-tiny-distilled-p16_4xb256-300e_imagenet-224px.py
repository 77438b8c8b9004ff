# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16 with a distillation token, from scratch on ImageNet-1k, 224 px.
# The distillation token learns a RegNetY's prediction; with
# model.teacher=None both classifiers learn the labels.
# Reproduces: the recipe of DeiT (Touvron's thesis, Table 3.9).
# Expected: not measured; quoted from the thesis: 74.5 % top-1, 72.2 % without
#   distillation token and teacher.
# Evaluation: validation split, last checkpoint.
# Cost: 1.26 GMACs, 5.91 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/deit-tiny-distilled-p16.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/teachers/regnety-160.py',
    '../_base_/default_runtime.py',
]
model = dict(
    type='mmclca.TokenReductionClassifier',
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
    teacher=_base_.teacher,
)
load_from = None
