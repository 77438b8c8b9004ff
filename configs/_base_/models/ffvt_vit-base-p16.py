# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# FFVT: ViT-B/16, trained on ImageNet-21k, 12 tokens of each layer, the last
# block new; dropout and zero-initialized head as in the public code.
_base_ = './_linear-classifier.py'
model = dict(
    backbone=dict(
        type='mmclca.FFVT',
        arch='base',
        img_size=224,
        patch_size=16,
        num_tokens=12,
        drop_rate=0.1,
    ),
    head=dict(
        in_channels=768,
        init_cfg=dict(_delete_=True, type='Constant', layer='Linear', val=0.0),
    ),
)
load_from = 'timm://vit_base_patch16_224.orig_in21k'
