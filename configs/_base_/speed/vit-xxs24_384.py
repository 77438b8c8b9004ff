# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The plain ViT of CaiT XXS-24's patch layers, for images of 384 px.
_base_ = './vit-s_linear.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=192,
            num_layers=24,
            num_heads=4,
            feedforward_channels=768,
        ),
        img_size=384,
    ),
    head=dict(in_channels=192),
)
