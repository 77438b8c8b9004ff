# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-Ti/16 of Three things, 6 layers of two parallel branches.
_base_ = './par-vit-small-18x2-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=192, num_layers=6, num_heads=3, feedforward_channels=768
        ),
        drop_path_rate=0.0,
    ),
    head=dict(in_channels=192),
)
