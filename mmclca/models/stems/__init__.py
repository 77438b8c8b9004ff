# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .build import build_stem

__all__ = ['build_stem']
