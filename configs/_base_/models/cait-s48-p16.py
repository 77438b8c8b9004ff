# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT S-48/16, for which no weights were released.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='s48', drop_path_rate=0.3), head=dict(in_channels=384)
)
load_from = None
