# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MAE-Lite's ViT-Ti/16 on CIFAR-100 at 224 px.
# FILE is a pre-trained checkpoint, own or released.
# Reproduces: MAE-Lite's transfer recipe.
# Expected: not measured; quoted from the paper: 78.9 % top-1, 85.0 % after
#   distillation.
# Evaluation: validation split, last checkpoint.
# Cost: 1.25 GMACs, 5.54 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/mae_lite/vit-tiny-12h-p16_4xb128-50e_cifar100-224px.py 4 \
#   --cfg-options load_from=FILE
_base_ = [
    '../_base_/models/vit-tiny-12h-p16.py',
    '../_base_/datasets/cifar100-mae-lite_224.py',
    '../_base_/schedules/mae-lite-transfer_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    # the data set brings RGB
    data_preprocessor=dict(num_classes=_base_.num_classes, to_rgb=False),
    head=dict(loss=_base_.loss, num_classes=_base_.num_classes),
)
