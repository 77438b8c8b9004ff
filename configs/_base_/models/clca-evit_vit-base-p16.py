# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16, trained on ImageNet-21k, with CLCA and EViT; configs set the keep
# rate, size and classes. As in the authors' code, images are normalized as for
# ImageNet-1k, although these weights were trained with mean and standard
# deviation 0.5.
_base_ = './_vit-base-p16.py'
model = dict(
    backbone=dict(
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(3, 6, 9, 11),
        final_norm=False,
    ),
    head=dict(type='mmclca.CLAHead', num_layers=4),
)
load_from = 'timm://vit_base_patch16_224.orig_in21k'
