# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .samplers import ClampedBatchSampler
from .ultra_fgvc import UltraFGVC

__all__ = ['ClampedBatchSampler', 'UltraFGVC']
