# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# SNCA+ on the four species of synthetic leaves: Grafit's kNN loss alone, of
# one view. With model.projector=fc SNCA.
# Reproduces: nothing; a baseline of Touvron's thesis, section 2.5, on another
#   set.
# Expected: docs/grafit.md, of half the layers.
# Evaluation: species of the test split by the bank, last checkpoint; cultivars
#   as in docs/grafit.md.
# Cost: 0.12 GMACs, 1.80 M parameters.
# Command: python tools/train.py \
#   configs/grafit/snca-plus_vit-mini-p14_1xb32-60e_synthetic-species-112px.py
_base_ = './grafit_vit-mini-p14_1xb32-60e_synthetic-species-112px.py'
model = dict(instance_weight=0, num_views=1)
train_dataloader = dict(
    dataset=dict(
        pipeline=[
            dict(type='LoadImageFromFile'),
            *_base_.four_views[1].transforms[0],
            dict(type='PackInputs'),
        ]
    )
)
