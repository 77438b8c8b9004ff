# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-Ti/16 with 12 heads, average pooling and a linear classifier, for
# MAE-Lite's encoder. A new norm after pooling replaces its final norm.
_base_ = './_vit-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=192,
            num_layers=12,
            num_heads=12,
            feedforward_channels=768,
        ),
        out_type='avg_featmap',
        final_norm=False,
    ),
    head=dict(
        type='LinearClsHead',
        in_channels=192,
        init_cfg=dict(type='TruncNormal', layer='Linear', std=2e-5),
    ),
)
