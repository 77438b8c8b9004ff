# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with average pooling, a new norm and a linear classifier, for
# encoders pre-trained by MAE and MIRL.
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
