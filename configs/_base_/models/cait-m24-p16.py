# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT M-24/16, for which no weights were released.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='m24', drop_path_rate=0.2), head=dict(in_channels=768)
)
load_from = None
