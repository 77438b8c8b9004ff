# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT-Ti/16, trained on ImageNet-1k, with EViT, and a linear classifier over
# the averages of the tokens of layers 0 to 8; layers 9 to 11 are not built.
# Layers 0 to 2, before the first reduction, are frozen: half the training
# cost, equal accuracy. Configs set the keep rate, size and classes.
_base_ = './_vit-base-p16.py'
model = dict(
    backbone=dict(
        arch='deit-tiny',
        depth=9,
        frozen_stages=3,
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6),
        out_type='average',
        out_indices=(0, 1, 2, 3, 4, 5, 6, 7, 8),
        final_norm=False,
    ),
    head=dict(
        type='mmclca.LayerFusionHead',
        in_channels=192,
        num_layers=9,
        loss=dict(
            type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'
        ),
    ),
)
load_from = 'timm://deit_tiny_patch16_224.fb_in1k'
