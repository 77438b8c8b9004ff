# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with CLCA and Top-K, which keeps the tokens with the largest CLS
# attention.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.TopK')))
