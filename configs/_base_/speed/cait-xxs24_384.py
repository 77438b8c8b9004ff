# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XXS-24 for images of 384 px.
_base_ = '../models/cait-xxs24-p16.py'
model = dict(backbone=dict(img_size=384))
