# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# ResMLP-B24/16, for which no weights were released.
_base_ = './resmlp-s12-p16.py'
model = dict(backbone=dict(arch='b24'), head=dict(in_channels=768))
load_from = None
