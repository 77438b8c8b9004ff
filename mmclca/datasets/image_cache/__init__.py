# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .transform import CacheImages, without_cache

__all__ = ['CacheImages', 'without_cache']
