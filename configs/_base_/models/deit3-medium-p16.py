# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-M/16, trained on ImageNet-1k. It is in the release only; the paper
# reports no stochastic depth rate for it, so this is the rate for S.
_base_ = './deit3-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=512,
            num_layers=12,
            num_heads=8,
            feedforward_channels=2048,
        ),
        drop_path_rate=0.0,
    ),
    head=dict(in_channels=512),
)
load_from = 'timm://deit3_medium_patch16_224.fb_in1k'
