# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with 24 layers, from MIRL's encoder.
_base_ = './vit-base-averaged-p16.py'
model = dict(backbone=dict(arch=dict(num_layers=24)))
