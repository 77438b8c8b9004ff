# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-L/16 of Three things, 12 layers of two parallel branches.
_base_ = './par-vit-small-18x2-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=1024,
            num_layers=12,
            num_heads=16,
            feedforward_channels=4096,
        ),
        drop_path_rate=0.4,
    ),
    head=dict(in_channels=1024),
)
