# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResNet-50 (ImageNet-1k) with attention pooling in place of average pooling,
# on leaf40, 224 px, three training images per class. One query; for one map
# per class set model.neck.multiclass and the head as in
# patchconvnet-s60-per-class_1xb16-50e_leaf40-224px.py.
# Reproduces: nothing; the recipe of the CLCA paper on another model. The
#   pooling is that of Touvron's thesis, section 5.3.4.
# Expected: not measured; quoted from the thesis: on ImageNet-1k 80.1 % top-1
#   at 4.6 GMACs, with the average 79.8 % at 4.1.
# Evaluation: test split, last checkpoint.
# Cost: 4.54 GMACs, 65.57 M parameters.
# Command: python tools/train.py \
#   configs/patchconvnet/attention-pool_resnet50_1xb32-50e_leaf40-224px.py
_base_ = [
    '../_base_/models/_linear-classifier.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/clca_50e.py',
    '../_base_/default_runtime.py',
]
weights = (
    'https://mmassets.onedl.ai/mmclassification/v0/resnet/'
    'resnet50_8xb256-rsb-a2-300e_in1k_20211228-0fd8be6e.pth'
)
model = dict(
    backbone=dict(
        type='ResNet',
        depth=50,
        init_cfg=dict(
            type='Pretrained', checkpoint=weights, prefix='backbone'
        ),
    ),
    neck=dict(type='mmclca.AttentionPool', in_channels=2048),
    head=dict(num_classes=_base_.num_classes, in_channels=2048),
)
