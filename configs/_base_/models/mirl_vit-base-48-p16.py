# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-B/16 of 48 layers, six segments of 8 layers.
_base_ = './mirl_vit-base-p16.py'
model = dict(backbone=dict(arch=dict(num_layers=48), num_segments=6))
