# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The thin and deep network of mirl_vit-thin-24-p16.py as a classifier.
_base_ = './vit-tiny-12h-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=128,
            num_layers=24,
            num_heads=4,
            feedforward_channels=512,
        )
    ),
    head=dict(in_channels=128),
)
