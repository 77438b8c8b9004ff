# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# The same attentions and FFNs as 18 x 2, four side by side.
_base_ = '../models/par-vit-small-18x2-p16.py'
model = dict(backbone=dict(arch=dict(num_layers=9), branches=4))
