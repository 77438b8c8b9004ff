# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with CLCA and PiToMe, which merges tokens in dense clusters.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.PiToMe')))
