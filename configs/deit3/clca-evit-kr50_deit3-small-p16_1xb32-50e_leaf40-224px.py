# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5.
# DeiT III-S/16 (ImageNet-1k) on leaf40, 224 px, three training images per
# class.
# Reproduces: the CLCA paper's recipe, with another model and dataset.
# Expected: not measured.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 2.44 GMACs, 21.71 M parameters.
# Command: python tools/train.py \
#   configs/deit3/clca-evit-kr50_deit3-small-p16_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/deit3-small-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    backbone=dict(
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(3, 6, 9, 11),
        final_norm=False,
    ),
    head=dict(
        _delete_=True,
        type='mmclca.CLAHead',
        num_classes=_base_.num_classes,
        in_channels=384,
        num_layers=4,
    ),
)
