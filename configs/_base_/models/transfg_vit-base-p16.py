# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# TransFG: ViT-B/16, trained on ImageNet-21k, patches of 16 px every 12 px, the
# last block new; dropout, contrastive loss and PyTorch's initialization of the
# head as in the public code.
_base_ = './_linear-classifier.py'
model = dict(
    type='mmclca.ContrastiveClassifier',
    contrast='transfg',
    backbone=dict(
        type='mmclca.TransFG',
        arch='base',
        img_size=224,
        patch_size=16,
        stride=12,
        drop_rate=0.1,
    ),
    head=dict(in_channels=768, init_cfg=None),
)
load_from = 'timm://vit_base_patch16_224.orig_in21k'
