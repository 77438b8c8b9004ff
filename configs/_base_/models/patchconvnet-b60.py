# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# PatchConvNet-B60, trained on ImageNet-1k.
_base_ = './patchconvnet-s60.py'
model = dict(
    backbone=dict(arch='b60', drop_path_rate=0.3), head=dict(in_channels=768)
)
load_from = 'https://dl.fbaipublicfiles.com/deit/b60_224_1k.pth'
