# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Parts that the command lines share.

Importing it takes less than a tenth of a second: torch, mmengine and
mmpretrain are imported when a tool begins to work, so that ``--help`` and
wrong options answer at once.
"""

from .arguments import Parser
from .mistakes import Mistake, plain_errors
from .verbs import run, run_command, upstream, vis_scheduler

__all__ = [
    'Mistake',
    'Parser',
    'plain_errors',
    'run',
    'run_command',
    'upstream',
    'vis_scheduler',
]
