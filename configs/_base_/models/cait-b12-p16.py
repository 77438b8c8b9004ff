# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT B-12/16, for which no weights were released. The thesis reports no
# stochastic depth rate for it; here it is 0.1 above the rate for S, as for M.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='b12', drop_path_rate=0.1), head=dict(in_channels=768)
)
load_from = None
