# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of 24 thin layers in four segments on unlabeled leaves, 112 px.
# Reproduces: nothing.
# Expected: docs/results/pretraining.md, 40 minutes each.
# Evaluation: none; configs/sweeps/pretraining.py fine-tunes the checkpoint.
# Cost: of whole images 0.26 GMACs, 5.39 M parameters.
# Command: python tools/train.py \
#   configs/mirl/mirl_vit-thin-24-p16_1xb64-100e_leaves-112px.py
_base_ = [
    '../_base_/models/mirl_vit-thin-24-p16.py',
    '../_base_/datasets/leaves-unlabelled_112.py',
    '../_base_/schedules/pretraining-leaves_100e.py',
    '../_base_/pretraining_runtime.py',
]
model = dict(backbone=dict(img_size=112))
