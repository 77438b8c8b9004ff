# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16, from scratch on ImageNet-1k, 224 px.
# Reproduces: the recipe of ResMLP (Touvron's thesis, section 4.3).
# Expected: not measured; quoted from the thesis: 76.6 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 3.01 GMACs, 15.35 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/resmlp/resmlp-s12-p16_4xb256-400e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/resmlp-s12-p16.py',
    '../_base_/datasets/imagenet-resmlp_224.py',
    '../_base_/schedules/resmlp_400e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
