# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit on ResNet-50; an MLP as projector.
model = dict(
    type='mmclca.Grafit',
    backbone=dict(type='ResNet', depth=50),
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
)
