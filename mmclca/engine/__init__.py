# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .hooks import *  # noqa: F403
from .optimization import BF16OptimWrapper as BF16OptimWrapper
from .optimization import WarmupCosineLR as WarmupCosineLR
