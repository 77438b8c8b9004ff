# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-S12/8, for which no weights were released.
_base_ = './resmlp-s12-p16.py'
model = dict(backbone=dict(patch_size=8))
load_from = None
