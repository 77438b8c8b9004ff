# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Command lines.

Import time is below 0.1 s: commands import torch, mmengine and mmpretrain in
``main``, so ``--help`` and wrong options answer immediately.
"""

from .arguments import Parser
from .main import run_command
from .run_program import run
from .upstream import upstream, vis_scheduler

__all__ = ['Parser', 'run', 'run_command', 'upstream', 'vis_scheduler']
