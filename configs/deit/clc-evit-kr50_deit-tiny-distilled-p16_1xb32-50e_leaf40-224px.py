# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# EViT, keep rate 0.5, with a cache (CLC): CLS and the distillation token stay,
# each is read by a classifier of its own.
# DeiT-Ti/16 distilled (ImageNet-1k) on leaf40, 224 px, three training images
# per class.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 0.67 GMACs, 5.54 M parameters.
# Command: python tools/train.py configs/deit/\
#   clc-evit-kr50_deit-tiny-distilled-p16_1xb32-50e_leaf40-224px.py
_base_ = './deit-tiny-distilled-p16_1xb32-50e_leaf40-224px.py'
model = dict(
    backbone=dict(
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
    )
)
