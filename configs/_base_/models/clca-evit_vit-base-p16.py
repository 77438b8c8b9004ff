# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16, trained on ImageNet-21k, with CLCA and EViT; configs set the keep
# rate, size and classes. As in the authors' code, images are normalized as for
# ImageNet-1k, although these weights were trained with mean and standard
# deviation 0.5.
model = dict(
    type='mmclca.TokenReductionClassifier',
    data_preprocessor=dict(
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        to_rgb=True,
    ),
    backbone=dict(
        type='mmclca.TokenReductionViT',
        arch='base',
        img_size=224,
        patch_size=16,
        norm_cfg=dict(type='LN', eps=1e-6),
        reducer=dict(type='mmclca.EViT', keep_rate=0.5),
        reduce_at=(3, 6, 9),
        cache=dict(type='mmclca.CrossLayerCache'),
        out_indices=(3, 6, 9, 11),
        final_norm=False,
    ),
    head=dict(
        type='mmclca.CLAHead', num_classes=1000, in_channels=768, num_layers=4
    ),
)
load_from = 'timm://vit_base_patch16_224.orig_in21k'
