# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What the command lines of the benchmarks share."""

import shlex
import sys
from pathlib import Path


def begin(tool: str, setting) -> dict[str, str]:
    """Set the threads and the seed of a measurement; gives the machine.

    Args:
        tool (str): Path of the tool, its ``__file__``.
        setting (Setting): What is measured.
    """
    import torch

    from mmclca.benchmark.machine import machine

    torch.set_num_threads(setting.threads)
    torch.manual_seed(0)
    name = f'tools/benchmark/{Path(tool).name}'
    return machine(setting, shlex.join(['python', name, *sys.argv[1:]]))
