# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-S120, trained on ImageNet-1k.
_base_ = './patchconvnet-s60.py'
model = dict(backbone=dict(arch='s120', drop_path_rate=0.2))
load_from = 'https://dl.fbaipublicfiles.com/deit/s120_224_1k.pth'
