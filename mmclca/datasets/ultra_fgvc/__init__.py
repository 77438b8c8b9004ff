# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .dataset import UltraFGVC

__all__ = ['UltraFGVC']
