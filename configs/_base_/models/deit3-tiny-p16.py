# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# DeiT III-T/16, for which no weights were released.
_base_ = './deit3-base-p16.py'
model = dict(
    backbone=dict(arch='deit-tiny', drop_path_rate=0.0),
    head=dict(in_channels=192),
)
load_from = None
