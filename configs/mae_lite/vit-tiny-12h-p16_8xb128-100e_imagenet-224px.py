# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite's ViT-Ti/16 fine-tuned on ImageNet-1k as in MAE, 100 epochs.
# FILE is a pre-trained checkpoint, own or released.
# Reproduces: the recipe of MAE in the public code of MAE-Lite.
# Expected: not measured; quoted from its maintainers: 76.2 % top-1.
# Evaluation: validation split, last checkpoint.
# Cost: 1.25 GMACs, 5.72 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mae_lite/vit-tiny-12h-p16_8xb128-100e_imagenet-224px.py 8 \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/vit-tiny-12h-p16.py',
    '../_base_/datasets/imagenet-mae-finetune_224.py',
    '../_base_/schedules/mae-finetune_100e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    head=dict(loss=_base_.loss),
    backbone=dict(drop_path_rate=0.1),
    train_cfg=_base_.mixup,
)
