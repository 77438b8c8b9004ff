# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-B120, trained on ImageNet-1k.
_base_ = './patchconvnet-s60.py'
model = dict(
    backbone=dict(arch='b120', drop_path_rate=0.4), head=dict(in_channels=768)
)
load_from = 'https://dl.fbaipublicfiles.com/deit/b120_224_1k.pth'
