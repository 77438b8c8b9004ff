# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Grafit: DeiT-Ti/16 (ImageNet-1k) on leaf40 by genus, 224 px, three training
# images per species.
# Reproduces: nothing; Grafit of Touvron's thesis (chapter 2) on another set.
# Expected: docs/grafit.md, of two views.
# Evaluation: genera of the test split by the bank, last checkpoint; species as
#   in docs/grafit.md.
# Cost: 1.25 GMACs, 11.98 M parameters.
# Command: python tools/train.py \
#   configs/grafit/grafit_deit-tiny-p16_1xb32-60e_leaf40-genus-224px.py
_base_ = [
    '../_base_/models/grafit_deit-tiny-p16.py',
    '../_base_/datasets/leaf40-genus_224.py',
    '../_base_/datasets/leaves_views_224.py',
    '../_base_/schedules/scratch_60e.py',
    '../_base_/default_runtime.py',
]
model = dict(num_classes=_base_.num_classes, num_images=120)
optim_wrapper = dict(optimizer=dict(lr=1e-4))
train_dataloader = dict(dataset=dict(pipeline=_base_.four_views))
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.BankHook'),
]
