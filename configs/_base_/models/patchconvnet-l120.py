# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-L120, for which no weights were released. The thesis reports no
# stochastic depth rate for it; here it is the rate for B120.
_base_ = './patchconvnet-s60.py'
model = dict(
    backbone=dict(arch='l120', drop_path_rate=0.4), head=dict(in_channels=1024)
)
load_from = None
