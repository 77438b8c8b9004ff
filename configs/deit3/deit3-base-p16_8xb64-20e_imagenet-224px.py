# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16 at 224 px after 192 px, the last checkpoint of
# deit3-base-p16_8xb256-800e_imagenet-192px.
# Reproduces: the recipe of DeiT III (Touvron's thesis, section 6.4).
# Expected: not measured; quoted from the thesis: 83.8 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 17.57 GMACs, 86.59 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/deit3/deit3-base-p16_8xb64-20e_imagenet-224px.py 8
_base_ = [
    '../_base_/models/deit3-base-p16.py',
    '../_base_/datasets/imagenet-cait_224.py',
    '../_base_/schedules/deit3-finetune_20e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(drop_path_rate=0.2),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
train_dataloader = dict(
    batch_size=64,
    sampler=dict(_delete_=True, type='DefaultSampler', shuffle=True),
)
load_from = 'work_dirs/deit3-base-p16_8xb256-800e_imagenet-192px/epoch_800.pth'
