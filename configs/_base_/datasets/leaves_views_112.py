# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# Training pipeline of Grafit on leaves, views of 112 px.
_base_ = ['leaves_views_224.py']
four_views = _base_.four_views
four_views[1].transforms[0][0].scale = 112
