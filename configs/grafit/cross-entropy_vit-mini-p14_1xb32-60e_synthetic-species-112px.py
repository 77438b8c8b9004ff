# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Cross entropy on four species of synthetic leaves: the baseline for Grafit.
# Reproduces: nothing; the baseline of Touvron's thesis, section 2.5, on
#   another dataset.
# Expected: docs/grafit.md, of half the layers.
# Evaluation: species of the test split, last checkpoint; cultivars as in
#   docs/grafit.md.
# Cost: 0.12 GMACs, 1.67 M parameters.
# Command: python tools/train.py \
#   configs/grafit/\
#   cross-entropy_vit-mini-p14_1xb32-60e_synthetic-species-112px.py
_base_ = [
    '../_base_/models/grafit_vit-mini-p14.py',
    '../_base_/datasets/synthetic-species_112.py',
    '../_base_/datasets/leaves_views_112.py',
    '../_base_/schedules/scratch_60e.py',
    '../_base_/default_runtime.py',
]
model = dict(
    _delete_=True,
    type='mmclca.TokenReductionClassifier',
    backbone=_base_.model.backbone,
    head=dict(
        type='LinearClsHead', num_classes=_base_.num_classes, in_channels=128
    ),
    data_preprocessor=_base_.model.data_preprocessor,
)
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(type='LoadImageFromFile'),
            *_base_.four_views[1].transforms[0],
            dict(type='PackInputs'),
        ]
    )
)
