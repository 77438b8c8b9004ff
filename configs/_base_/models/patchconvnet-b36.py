# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-B36, for which no weights were released.
_base_ = './patchconvnet-s60.py'
model = dict(
    backbone=dict(arch='b36', drop_path_rate=0.2), head=dict(in_channels=768)
)
load_from = None
