# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .hooks import *  # noqa: F403
from .optimizers import *  # noqa: F403
from .schedulers import *  # noqa: F403
