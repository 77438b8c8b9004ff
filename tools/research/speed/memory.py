# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Peak memory of a pass, including weights and images.

On a GPU, this is the peak of PyTorch's allocator. On a CPU, it is the peak
resident set size of a new process, minus its size after all libraries have
been used without the model. Every model gets a new process, because freed
heap memory would be available to the next model. This process returns freed
memory to the system immediately.
"""

import gc
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import torch

from mmclca.benchmark import Candidate, Setting
from mmclca.benchmark.peak_memory import PROCESS, read_resident
from mmclca.benchmark.steps import make_step
from mmclca.utils.compile_modes import WITH_CUDA_GRAPHS

from .candidates import Size, timm_vit

PASSES = 2  # the first pass allocates the optimizer's moments
# mallopt(3): the C library returns larger blocks as soon as they are freed,
# not when the heap shrinks
MALLOC = {'MALLOC_MMAP_THRESHOLD_': '65536'}
# mmcv warns about operators that are not compiled, and not needed here
QUIET = 'ignore:Fail to import'
TINY = Size('tiny', (32, 32), 64, 1, 1, 64)


def peak_memory(candidate: Candidate, setting: Setting) -> int:
    """Peak memory of a pass in bytes.

    Raises a RuntimeError if the measuring process is killed.
    """
    if setting.on_gpu:
        return _peak_on_gpu(candidate, setting)
    paths = dict(PYTHONPATH=os.pathsep.join(sys.path))
    code = f'import {__name__} as m; m.print_peak()'
    child = subprocess.run(
        [sys.executable, '-W', QUIET, '-c', code],
        env=os.environ | paths | MALLOC,
        input=pickle.dumps((candidate, setting)),
        stdout=subprocess.PIPE,
    )
    if child.returncode < 0:  # a signal; the process prints nothing
        raise RuntimeError(
            f'the process that measures the memory of {candidate.title} was '
            f'killed (signal {-child.returncode}), maybe as memory ran out; '
            'use `memory=False` or a smaller `batch`'
        )
    child.check_returncode()
    return int(child.stdout.split()[-1])


def obstacle(setting: Setting) -> str:
    """Reason why peak memory cannot be measured; empty if it can."""
    if setting.on_gpu:
        graphs = setting.compile_mode in WITH_CUDA_GRAPHS
        return 'CUDA graphs hide the allocations' * graphs
    if setting.compile_mode:
        return 'on a CPU the memory of the compiler would be counted'
    linux = PROCESS.joinpath('status').exists()
    return '' if linux else 'on a CPU this needs Linux'


def _peak_on_gpu(candidate: Candidate, setting: Setting) -> int:
    _warm_up(setting)
    _free_memory()
    before = torch.cuda.memory_allocated(setting.device)
    step = _run_passes(candidate, setting)
    torch.cuda.reset_peak_memory_stats(setting.device)
    step()
    peak = torch.cuda.max_memory_allocated(setting.device) - before
    del step
    _free_memory()
    return peak


def _free_memory() -> None:
    """Free previous models and their compiled code."""
    torch.compiler.reset()  # the number of models per class is limited
    gc.collect()


def print_peak() -> None:
    """Print the peak of a pickled model and setting, read from stdin."""
    candidate, setting = pickle.load(sys.stdin.buffer)
    print(_peak_on_cpu(candidate, setting))


def _peak_on_cpu(candidate: Candidate, setting: Setting) -> int:
    torch.set_num_threads(setting.threads)
    _warm_up(setting)
    gc.collect()
    before = read_resident('VmRSS')
    # 5 resets the peak (proc(5)); getrusage would report the parent's peak
    PROCESS.joinpath('clear_refs').write_text('5', 'utf-8')
    _run_passes(candidate, setting)
    return read_resident('VmHWM') - before


def _warm_up(setting: Setting) -> None:
    """Allocate lasting buffers of libraries, such as cuBLAS workspaces."""
    _run_passes(timm_vit(TINY), replace(setting, batch=2, compile_mode=None))


def _run_passes(
    candidate: Candidate, setting: Setting
) -> Callable[[], object]:
    """Build a model, run ``PASSES`` passes, and return the pass."""
    step = make_step(candidate, setting)
    for _ in range(PASSES):
        step()
    return step
