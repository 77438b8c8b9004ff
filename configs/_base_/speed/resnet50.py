# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
# MMPretrain's ResNet-50, for images of 224 px.
_base_ = 'mmpretrain::_base_/models/resnet50.py'
