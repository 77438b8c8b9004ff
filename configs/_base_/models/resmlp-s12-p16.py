# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/16, trained on ImageNet-1k with hard distillation: no attention, a
# linear layer over the patches in its place, for images of this size alone.
_base_ = './_linear-classifier.py'
model = dict(
    backbone=dict(
        type='mmclca.ResMLP',
        arch='s12',
        img_size=224,
        patch_size=16,
        drop_path_rate=0.1,
    ),
    head=dict(in_channels=384),
)
load_from = 'timm://resmlp_12_224.fb_distilled_in1k'
