# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-H-52/14, H with 52 layers, for which no weights were released.
_base_ = './deit3-huge-p14.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=1280,
            num_layers=52,
            num_heads=16,
            feedforward_channels=5120,
        )
    )
)
load_from = None
