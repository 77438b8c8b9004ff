# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Cross entropy of DeiT-Ti/16 (ImageNet-1k) on leaf40 by genus, 224 px, three
# training images per species: the baseline for Grafit.
# Reproduces: nothing; the baseline of Touvron's thesis, section 2.5, on
#   another dataset.
# Expected: docs/grafit.md.
# Evaluation: genera of the test split, last checkpoint; species as in
#   docs/grafit.md.
# Cost: 1.25 GMACs, 5.53 M parameters.
# Command: python tools/train.py \
#   configs/grafit/cross-entropy_deit-tiny-p16_1xb32-60e_leaf40-genus-224px.py
_base_ = [
    '../_base_/models/grafit_deit-tiny-p16.py',
    '../_base_/datasets/leaf40-genus_224.py',
    '../_base_/datasets/leaves_views_224.py',
    '../_base_/schedules/scratch_60e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    _delete_=True,
    type='mmclca.TokenReductionClassifier',
    backbone=_base_.model.backbone,
    head=dict(
        type='LinearClsHead', num_classes=_base_.num_classes, in_channels=192
    ),
    data_preprocessor=_base_.model.data_preprocessor,
)
optim_wrapper = dict(optimizer=dict(lr=1e-4))
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(type='LoadImageFromFile'),
            *_base_.four_views[1].transforms[0],
            dict(type='PackInputs'),
        ]
    )
)
