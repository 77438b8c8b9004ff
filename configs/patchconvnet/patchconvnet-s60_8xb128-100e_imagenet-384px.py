# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60 on ImageNet-1k at 384 px, after ImageNet-21k: the last
# checkpoint of patchconvnet-s60_8xb256-90e_imagenet21k-224px.
# Reproduces: the recipe of PatchConvNet (Touvron's thesis, section 5.3).
# Expected: not measured; quoted from the thesis: 84.6 % top-1.
# Evaluation: validation split, the whole of the short side, last checkpoint.
# Cost: 11.68 GMACs, 25.23 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/patchconvnet/patchconvnet-s60_8xb128-100e_imagenet-384px.py 8
_base_ = [
    '../_base_/models/patchconvnet-s60.py',
    '../_base_/datasets/imagenet-patchconvnet_384.py',
    '../_base_/schedules/patchconvnet-in21k-in1k_100e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    data_preprocessor=dict(num_classes=_base_.num_classes),
    backbone=dict(img_size=384, drop_path_rate=0.05),
    head=dict(loss=_base_.loss),
    train_cfg=_base_.mixup,
)
train_dataloader = dict(batch_size=128)
load_from = (
    'work_dirs/patchconvnet-s60_8xb256-90e_imagenet21k-224px/epoch_90.pth'
)
