# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .deit_init import DeiTInit

__all__ = ['DeiTInit']
