# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 whose patches are averaged for a linear classifier, with a new norm:
# what the encoder of MAE and MIRL becomes.
_base_ = './vit-tiny-12h-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            embed_dims=768,
            num_layers=12,
            num_heads=12,
            feedforward_channels=3072,
        ),
        drop_path_rate=0.1,
    ),
    head=dict(in_channels=768),
)
