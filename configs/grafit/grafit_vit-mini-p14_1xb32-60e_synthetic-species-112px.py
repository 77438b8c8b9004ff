# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit: a small ViT from scratch on synthetic leaves, by their four species,
# so that the 16 cultivars inside separate.
# Reproduces: nothing; Grafit of Touvron's thesis (chapter 2) on another set.
# Expected: docs/grafit.md, of half the layers and two views.
# Evaluation: species of the test split by the bank, last checkpoint; cultivars
#   as in docs/grafit.md.
# Cost: 0.12 GMACs, 3.74 M parameters.
# Command: python tools/train.py \
#   configs/grafit/grafit_vit-mini-p14_1xb32-60e_synthetic-species-112px.py
_base_ = [
    '../_base_/models/grafit_vit-mini-p14.py',
    '../_base_/datasets/synthetic-species_112.py',
    '../_base_/datasets/leaves_views_112.py',
    '../_base_/schedules/scratch_60e.py',
    '../_base_/default_runtime.py',
]
model = dict(num_classes=_base_.num_classes, num_images=2000)
train_dataloader = dict(dataset=dict(pipeline=_base_.four_views))
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.BankHook'),
]
