# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The attentions and FFNs of ViT-S/16, two side by side.
_base_ = '../models/par-vit-small-18x2-p16.py'
model = dict(backbone=dict(arch=dict(num_layers=6)))
