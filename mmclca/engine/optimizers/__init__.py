# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .bf16_optim_wrapper import BF16OptimWrapper

__all__ = ['BF16OptimWrapper']
