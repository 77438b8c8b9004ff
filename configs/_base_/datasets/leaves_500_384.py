# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Pipelines of FFVT: resize to a square of 500 px (bilinear), then crop
# 384 px.
_base_ = './leaves_600_448.py'
crop = _base_.crop
crop.train[0].transforms[1].scale = (500, 500)
crop.train[1].crop_size = 384
crop.test[1].scale = (500, 500)
crop.test[2].crop_size = 384
