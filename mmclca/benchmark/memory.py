# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The most memory that a pass takes, weights and images included.

On a GPU: the peak of what PyTorch's allocator hands out. On the CPU: the
peak of the resident set of a process of its own, above what it was with all
libraries in use and no model built. Such a process is new for each model,
since what one leaves in the heap would be there for the next, and gives back
at once what it frees.
"""

import gc
import os
import pickle
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from mmclca.utils.compile_modes import WITH_CUDA_GRAPHS

from .candidates import Candidate, Size, timm_vit
from .steps import Setting, step_of

PASSES = 2  # from the second one on, the optimizer has its moments
PROCESS = Path('/proc/self')
# of the C library (mallopt(3)): larger blocks go back when they are freed, not
# when the heap happens to shrink
GIVE_BACK = {'MALLOC_MMAP_THRESHOLD_': '65536'}
TINY = Size('tiny', (32, 32), 64, 1, 1, 64)


def peak_memory(candidate: Candidate, setting: Setting) -> int:
    """Bytes at the peak of a pass.

    Args:
        candidate (Candidate): The model.
        setting (Setting): What it is put through.
    """
    if setting.on_gpu:
        return _peak_on_gpu(candidate, setting)
    paths = dict(PYTHONPATH=os.pathsep.join(sys.path))
    child = subprocess.run(
        [sys.executable, '-c', f'import {__name__} as m; m.print_peak()'],
        env=os.environ | paths | GIVE_BACK,
        input=pickle.dumps((candidate, setting)),
        stdout=subprocess.PIPE,
        check=True,
    )
    return int(child.stdout.split()[-1])


def obstacle(setting: Setting) -> str:
    """Why peaks of memory cannot be measured; empty where they can."""
    if setting.on_gpu:
        graphs = setting.compile_mode in WITH_CUDA_GRAPHS
        return 'CUDA graphs hide the allocations' * graphs
    if setting.compile_mode:
        return 'on a CPU the memory of the compiler would be counted'
    linux = PROCESS.joinpath('status').exists()
    return '' if linux else 'on a CPU this needs Linux'


def _peak_on_gpu(candidate: Candidate, setting: Setting) -> int:
    _forget()
    before = torch.cuda.memory_allocated(setting.device)
    step = _warm(candidate, setting)
    torch.cuda.reset_peak_memory_stats(setting.device)
    step()
    peak = torch.cuda.max_memory_allocated(setting.device) - before
    del step
    _forget()
    return peak


def _forget() -> None:
    """Free models of before, and what was compiled for them."""
    torch.compiler.reset()  # else it gives up after a few models of a kind
    gc.collect()


def print_peak() -> None:
    """Print the peak of a pickled model and setting, read from stdin."""
    print(_peak_on_cpu(*pickle.load(sys.stdin.buffer)))


def _peak_on_cpu(candidate: Candidate, setting: Setting) -> int:
    torch.set_num_threads(setting.threads)
    # what libraries take at their first use is nobody's
    _warm(timm_vit(TINY), replace(setting, batch=2, compile_mode=None))
    gc.collect()
    before = resident('VmRSS')
    # 5: the peak starts anew (proc(5)); getrusage would tell the parent's
    PROCESS.joinpath('clear_refs').write_text('5')
    _warm(candidate, setting)
    return resident('VmHWM') - before


def _warm(candidate: Candidate, setting: Setting) -> Callable[[], object]:
    step = step_of(candidate, setting)
    for _ in range(PASSES):
        step()
    return step


def resident(name: str) -> int:
    """Bytes of a line of ``/proc/self/status``."""
    text = PROCESS.joinpath('status').read_text()
    return int(re.search(rf'{name}:\s+(\d+) kB', text)[1]) * 1024


def peak_so_far() -> float:
    """Peak of memory in MiB since this process began: of the GPU where there
    is one, else of the process itself."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    if PROCESS.joinpath('status').exists():
        return resident('VmHWM') / 2**20
    # macOS, in bytes; on Linux it may be that of the parent
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
