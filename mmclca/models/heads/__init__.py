# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .cla_head import CLAHead

__all__ = ['CLAHead']
