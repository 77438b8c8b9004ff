# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 of DINOv3, trained on LVD-1689M without labels, with CLCA and EViT.
# The weights have their own license, which timm's page of them names.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmclca.TimmViT',
        arch='vit_small_patch16_dinov3',
        img_size=224,
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(3, 6, 9, 11),
        final_norm=False,
    ),
    head=dict(in_channels=384),
)
load_from = 'timm://vit_small_patch16_dinov3.lvd1689m'
