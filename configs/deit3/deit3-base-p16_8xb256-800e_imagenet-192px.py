# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16, from scratch on ImageNet-1k at 192 px. Its fine-tuning at 224
# px: deit3-base-p16_8xb64-20e_imagenet-224px.
# Reproduces: the recipe of DeiT III (Touvron's thesis, section 6.4).
# Expected: not measured; quoted from the thesis, after the fine-tuning:
#   83.8 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 12.79 GMACs, 86.55 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-base-p16_8xb256-800e_imagenet-192px.py 8
_base_ = [
    '../_base_/models/deit3-base-p16.py',
    '../_base_/datasets/imagenet-deit3-low_192.py',
    '../_base_/schedules/deit3_800e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(img_size=192, drop_path_rate=0.2),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
load_from = None
