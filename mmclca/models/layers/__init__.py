# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .deit_init import DeiTInit
from .resmlp_layer import Affine

__all__ = ['Affine', 'DeiTInit']
