# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Command lines.

Import time is below 0.1 s: torch, mmengine and mmpretrain are imported when a
command starts to work, so ``--help`` and wrong options answer immediately.
"""

from .arguments import Parser
from .errors import UsageError, usage_errors
from .main import run, run_command, upstream, vis_scheduler

__all__ = [
    'UsageError',
    'Parser',
    'usage_errors',
    'run',
    'run_command',
    'upstream',
    'vis_scheduler',
]
