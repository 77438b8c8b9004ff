# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .affine import Affine
from .deit_init import DeiTInit

__all__ = ['Affine', 'DeiTInit']
