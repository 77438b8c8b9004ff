# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-B/16, trained on ImageNet-1k: a ViT with layer scale and uniform
# stochastic depth, without a CLS position.
_base_ = './_deit-base-p16.py'
model = dict(
    backbone=dict(
        with_cls_pos=False,
        layer_scale_init_value=1e-4,
        drop_path_rate=0.1,
        drop_path_mode='uniform',
    )
)
load_from = 'timm://deit3_base_patch16_224.fb_in1k'
