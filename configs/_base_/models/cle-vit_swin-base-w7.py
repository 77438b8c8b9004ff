# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CLE-ViT: Swin-B with windows of 7 patches, trained on ImageNet-21k and then
# on ImageNet-1k; the public code starts from the ImageNet-21k weights. Label
# smoothing as in the public code.
_base_ = './_linear-classifier.py'
model = dict(
    type='mmclca.CLEViTClassifier',
    label_smoothing=0.1,
    backbone=dict(
        type='SwinTransformer', arch='base', img_size=224, drop_path_rate=0.5
    ),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(in_channels=1024),
)
load_from = (
    'https://mmassets.onedl.ai/mmclassification/v0/swin-transformer/convert/'
    'swin_base_patch4_window7_224_22kto1k-f967f799.pth'
)
