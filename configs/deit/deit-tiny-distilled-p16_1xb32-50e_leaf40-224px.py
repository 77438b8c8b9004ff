# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16 with a distillation token (ImageNet-1k), all tokens kept.
# On leaf40, 224 px, three training images per class; both classifiers learn
# from the labels, at test their logits are averaged.
# Reproduces: nothing; the recipe of the CLCA paper on another model.
# Expected: not measured.
# Evaluation: test split, last checkpoint.
# Cost: 1.26 GMACs, 5.54 M parameters.
# Command: python tools/train.py \
#   configs/deit/deit-tiny-distilled-p16_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/deit-tiny-distilled-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys={'.dist_token': dict(decay_mult=0.0)})
)
