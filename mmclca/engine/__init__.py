# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .hooks import *  # noqa: F403
from .optimizers import BF16OptimWrapper as BF16OptimWrapper
from .schedulers import WarmupCosineLR as WarmupCosineLR
