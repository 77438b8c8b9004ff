# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S36, for which no weights were released.
_base_ = './patchconvnet-s60.py'
model = dict(backbone=dict(arch='s36', drop_path_rate=0.05))
load_from = None
