# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 of Three things, 18 layers of two parallel branches.
_base_ = './par-vit-small-18x2-p16.py'
model = dict(
    backbone=dict(
        arch=dict(embed_dims=768, num_heads=12, feedforward_channels=3072),
        drop_path_rate=0.1,
    ),
    head=dict(in_channels=768),
)
