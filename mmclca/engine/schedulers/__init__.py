# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .warmup_cosine_lr import WarmupCosineLR

__all__ = ['WarmupCosineLR']
