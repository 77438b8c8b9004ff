# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with CLCA and Sinkhorn, which mixes tokens by optimal
# transport to learned centers.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.Sinkhorn')))
