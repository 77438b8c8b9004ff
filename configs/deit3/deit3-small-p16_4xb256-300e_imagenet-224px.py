# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-S/16, from scratch on ImageNet-1k, 224 px, by the recipe of DeiT.
# Reproduces: nothing; DeiT III itself trains with LAMB, 3-Augment and binary
# cross-entropy. Tests the released weights as DeiT III does: tools/test.py,
# this config and the file.
# Expected: not measured; quoted from Touvron's thesis: by this recipe 79.8 %
# top-1 for DeiT-S, which has no layer scale; 81.4 % for the released weights.
# Evaluation: validation split, last checkpoint.
# Cost: 4.60 GMACs, 22.06 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-small-p16_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/deit3-small-p16.py',
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
