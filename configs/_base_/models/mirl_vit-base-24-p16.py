# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MIRL of ViT-B/16 of 24 layers, four segments of 6 layers.
_base_ = './mirl_vit-base-p16.py'
model = dict(backbone=dict(arch=dict(num_layers=24), num_segments=4))
