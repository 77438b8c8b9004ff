# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .build import build_stem
from .conv_stem import ConvStem
from .hmlp_stem import HMLPStem

__all__ = ['ConvStem', 'HMLPStem', 'build_stem']
