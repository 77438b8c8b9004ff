# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S60 with one query a class: a map of each class, see
# tools/visualization/vis_pooling.py. On leaf40, 224 px, three training images
# per class, from the model of patchconvnet-s60_1xb32-50e_leaf40-224px: each
# class starts with its query and with its own row of the linear head. Stem and
# column are frozen; lower rate and smaller batch, as in Touvron's thesis,
# section 5.2.1.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 4.03 GMACs, 24.88 M parameters.
# Command: python tools/train.py configs/patchconvnet/\
#   patchconvnet-s60-per-class_1xb16-50e_leaf40-224px.py
_base_ = './patchconvnet-s60_1xb32-50e_leaf40-224px.py'
model = dict(
    backbone=dict(multiclass=_base_.num_classes, frozen_stages=60),
    head=dict(
        _delete_=True,
        type='mmclca.PerClassHead',
        num_classes=_base_.num_classes,
        in_channels=384,
    ),
)
train_dataloader = dict(batch_size=16)
optim_wrapper = dict(optimizer=dict(lr=2e-5))
load_from = 'work_dirs/patchconvnet-s60_1xb32-50e_leaf40-224px/epoch_50.pth'
