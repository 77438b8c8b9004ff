# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

# imported to register its classes
from . import hooks  # noqa: F401
from .optimization import BF16OptimWrapper, WarmupCosineLR

__all__ = ['BF16OptimWrapper', 'WarmupCosineLR']
