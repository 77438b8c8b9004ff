# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLCA with EViT, keep rate 0.5.
# ViT-S/16 of DINOv3 on Cotton80, 224 px.
# Reproduces: the recipe of the CLCA paper, with other weights and size.
# Expected: not measured.
# Evaluation: test split, last checkpoint, as in the authors' code.
# Cost: 2.53 GMACs, 21.65 M parameters.
# Command: python tools/train.py \
#   configs/clca/clca-evit-kr50_dinov3-small-p16_1xb32-50e_cotton80-224px.py
_base_ = [
    '../_base_/models/clca-evit_dinov3-small-p16.py',
    '../_base_/datasets/cotton80_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys={'.reg_token': dict(decay_mult=0.0)})
)
