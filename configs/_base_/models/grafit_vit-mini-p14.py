# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit on a ViT small enough to train from scratch on a CPU: 64 patches, 8
# layers, all tokens; an MLP as projector.
model = dict(
    type='mmclca.Grafit',
    backbone=dict(
        type='mmclca.TokenReductionViT',
        arch=dict(
            embed_dims=128, num_layers=8, num_heads=4, feedforward_channels=512
        ),
        img_size=112,
        patch_size=14,
    ),
    hidden=512,
    out_channels=128,
    data_preprocessor=dict(
        mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5], to_rgb=True
    ),
)
