# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-S/16 with the usual stem.
_base_ = '../models/_deit-base-p16.py'
model = dict(backbone=dict(arch='deit-small'), head=dict(in_channels=384))
