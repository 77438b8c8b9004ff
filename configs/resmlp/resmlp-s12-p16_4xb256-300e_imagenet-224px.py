# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16, from scratch on ImageNet-1k, 224 px, by the recipe of DeiT.
# Reproduces: nothing; ResMLP itself trains for 400 epochs with LAMB, and tests
# on 224 of 248 px of the short side, not of 256.
# Expected: not measured; quoted from Touvron's thesis, by its own recipe:
#   76.6 % top-1 without a teacher, 77.8 % with one.
# Evaluation: validation split, last checkpoint.
# Cost: 3.01 GMACs, 15.35 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/resmlp/resmlp-s12-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/resmlp-s12-p16.py',
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
