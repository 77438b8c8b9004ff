# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60, from scratch on ImageNet-1k, 224 px, by the recipe of DeiT.
# Reproduces: nothing; PatchConvNet itself trains for 400 epochs with LAMB and
# without random erasing.
# Expected: not measured; quoted from Touvron's thesis, by its own recipe:
#   82.1 % top-1.
# Evaluation: validation split, the whole of the short side, last checkpoint.
# Cost: 3.98 GMACs, 25.23 M parameters.
# Command: bash tools/dist_train.sh \
#   configs/patchconvnet/patchconvnet-s60_4xb256-300e_imagenet-224px.py 4
_base_ = [
    '../_base_/models/patchconvnet-s60.py',
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
