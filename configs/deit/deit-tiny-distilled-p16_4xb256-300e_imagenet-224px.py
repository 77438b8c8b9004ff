# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16 with a distillation token, from scratch on ImageNet-1k, 224 px.
# Both classifiers learn from the labels: there is no teacher here.
# Reproduces: the recipe of DeiT (Touvron's thesis, Table 3.9), teacher apart.
# Expected: not measured; quoted from the thesis: 72.2 % top-1 without
#   distillation token and teacher, 74.5 % with both.
# Evaluation: validation split, last checkpoint.
# Cost: 1.26 GMACs, 5.91 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit/deit-tiny-distilled-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/deit-tiny-distilled-p16.py',
    '../_base_/datasets/imagenet_224.py',
    '../_base_/schedules/deit_300e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.smoothing),
    train_cfg=_base_.mixup,
)
load_from = None
