# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .transform import CacheImages

__all__ = ['CacheImages']
