# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A ViT small enough to train from scratch on a CPU: 64 patches, 8 layers.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=128,
            num_layers=8,
            num_heads=4,
            feedforward_channels=512,
        ),
        img_size=112,
        patch_size=14,
        reduce_at=(2, 4, 6),
        out_indices=(2, 4, 6, 7),
    ),
    head=dict(in_channels=128),
)
load_from = None
