# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# A classifier over layers 0 to 8 of a network with EViT, keep rate 0.5: fitted
# in closed form to frozen features, then fine-tuned with the network.
# DeiT-Ti/16 (ImageNet-1k) on leaf40, 224 px, three training images per class.
# Reproduces: nothing; the recipe in docs/results/fine_tuning.md.
# Expected: measured in docs/results/fine_tuning.md.
# Evaluation: test split, last checkpoint.
# Cost: 0.59 GMACs, 4.26 M parameters.
# Command: python tools/train.py \
#   configs/few_shot/lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px.py
_base_ = [
    '../_base_/models/lf-evit_deit-tiny-p16.py',
    '../_base_/datasets/leaf40_224.py',
    '../_base_/schedules/few_shot_20e.py',
    '../_base_/default_runtime.py',
]
model = dict(head=dict(num_classes=_base_.num_classes))
train_dataloader = dict(
    sampler=dict(type='mmclca.MinLengthSampler', min_samples=256)
)
custom_hooks = [
    dict(type='mmclca.ClassCountHook'),
    dict(type='mmclca.ProbeInitHook'),
]
