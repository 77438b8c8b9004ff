# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S20, for which no weights were released.
_base_ = './patchconvnet-s60.py'
model = dict(backbone=dict(arch='s20', drop_path_rate=0.0))
load_from = None
