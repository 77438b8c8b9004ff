# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16, trained on ImageNet-21k, with EViT and without CLC and CLA; configs
# set the keep rate, size and classes.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(
    backbone=dict(cache=None, out_indices=-1, final_norm=True),
    head=dict(
        _delete_=True,
        type='VisionTransformerClsHead',
        in_channels=768,
        init_cfg=None,
    ),
)
