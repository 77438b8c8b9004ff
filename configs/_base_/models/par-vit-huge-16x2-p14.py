# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-H/14, 16 layers of two parallel branches. Three things has no model
# with this width; the stochastic depth rate is from DeiT III-H.
_base_ = './par-vit-small-18x2-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=1280,
            num_layers=16,
            num_heads=16,
            feedforward_channels=5120,
        ),
        patch_size=14,
        drop_path_rate=0.5,
    ),
    head=dict(in_channels=1280),
)
