# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Memory of this process."""

import re
from pathlib import Path

import torch

from mmclca.errors import Error

PROCESS = Path('/proc/self')


def read_resident(name: str, process: Path = PROCESS) -> int:
    """Bytes in the line ``name`` of ``/proc/self/status``.

    ``process`` is the folder of another process.
    """
    status = process.joinpath('status').read_text('utf-8')
    match = re.search(rf'{name}:\s+(\d+) kB', status)
    if match is None:
        raise Error(f'{process}/status lacks the line {name}')
    return int(match[1]) * 1024


def get_peak_memory() -> float:
    """Peak memory of this process in MiB, on the GPU if available."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    if PROCESS.joinpath('status').exists():
        return read_resident('VmHWM') / 2**20
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    # macOS, in bytes; on Linux it may be the parent's peak
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
