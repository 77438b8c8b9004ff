# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-H-26x2/14, H-52 as 26 layers of two parallel branches, for which no
# weights were released.
_base_ = './deit3-huge-52-p14.py'
model = dict(backbone=dict(arch=dict(num_layers=26), branches=2))
