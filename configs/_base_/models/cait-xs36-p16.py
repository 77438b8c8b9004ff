# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# CaiT XS-36/16, for which no weights were released.
_base_ = './cait-xxs24-p16.py'
model = dict(
    backbone=dict(arch='xs36', drop_path_rate=0.1), head=dict(in_channels=288)
)
load_from = None
