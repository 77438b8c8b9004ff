# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A wider masked autoencoder on unlabeled leaves, 112 px: a teacher for
# distilled-mae_vit-tiny-p16_1xb64-100e_leaves-112px.
# Reproduces: nothing.
# Expected: docs/results/pretraining.md, 40 minutes each.
# Evaluation: none; configs/sweeps/pretraining.py fine-tunes the checkpoint.
# Cost: of whole images 1.10 GMACs, 21.84 M parameters.
# Command: python tools/train.py \
#   configs/mae_lite/mae_vit-small-p16_1xb64-100e_leaves-112px.py
_base_ = [
    '../_base_/models/mae_vit-tiny-p16.py',
    '../_base_/datasets/leaves-unlabelled_112.py',
    '../_base_/schedules/pretraining-leaves_100e.py',
    '../_base_/pretraining_runtime.py',
]
model = dict(
    backbone=dict(
        img_size=112, arch=dict(embed_dims=384, feedforward_channels=1536)
    ),
    neck=dict(num_patches=49, embed_dim=384),
)
