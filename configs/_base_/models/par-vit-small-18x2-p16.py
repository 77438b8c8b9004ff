# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 of Three things everyone should know about Vision Transformers, 18
# layers of two parallel branches, for which no weights were released. Any
# D x n by two options: backbone.arch.num_layers and backbone.branches. The
# paper's 400-epoch models have layer_scale_init_value=1e-4, those of 300
# epochs none.
_base_ = './_deit-base-p16.py'
model = dict(
    backbone=dict(
        arch=dict(
            _delete_=True,
            embed_dims=384,
            num_layers=18,
            num_heads=6,
            feedforward_channels=1536,
        ),
        branches=2,
        with_cls_pos=False,
        drop_path_rate=0.05,
        drop_path_mode='uniform',
    ),
    head=dict(in_channels=384),
)
load_from = None
