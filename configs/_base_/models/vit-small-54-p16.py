# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with 54 layers, from MIRL's encoder.
_base_ = './vit-base-averaged-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=384,
            num_layers=54,
            num_heads=12,
            feedforward_channels=1536,
        )
    ),
    head=dict(in_channels=384),
)
