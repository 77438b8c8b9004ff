# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ViT-B/16 with CLCA and ATS, which samples as many tokens as an image
# needs, at most the count given by the keep rate.
_base_ = './clca-evit_vit-base-p16.py'
model = dict(backbone=dict(reducer=dict(type='mmclca.ATS')))
