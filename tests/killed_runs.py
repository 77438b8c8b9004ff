# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Train in new processes that are killed at given moments."""

import multiprocessing
import os
import resource
import signal
import time
from collections import namedtuple
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from itertools import count

import pytest
import torch
from mmengine.runner import Runner
from tiny_run import ROOT, free_port, run_tool

# after a time, at a call of the hooks, or in the next file of this size
Kill = namedtuple('Kill', 'seconds call size', defaults=(90, None, None))
NEVER = Kill()
AMP = 'mmengine.optim.optimizer.amp_optimizer_wrapper'


def draw_kill(random):
    """Return a moment in the first second, a step or a checkpoint."""
    call, size = random.randrange(80), random.randrange(200_000)
    early = Kill(random.random())
    return random.choice([early, Kill(call=call), Kill(call=call, size=size)])


def train(folder, words, processes=1, kill=NEVER, start='fork'):
    """Train by tools/train.py; return whether all processes ended well.

    If one is killed, the others are too, as by ``torchrun``.
    """
    places = dict(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(free_port()))
    places['WORLD_SIZE'] = str(processes)
    started = []
    for rank in range(processes):
        given = folder, words, kill, dict(places, RANK=str(rank))
        process = multiprocessing.get_context(start).Process
        started.append(process(target=_train, args=given))
        started[-1].start()
    end = time.monotonic() + kill.seconds
    while {None} <= {x.exitcode for x in started} <= {None, 0}:
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and its workers
        process.join()
    return not any(x.exitcode for x in started)


def _train(folder, words, kill, places):
    os.setpgid(0, 0)
    os.environ.update(places, LOCAL_RANK=places['RANK'])
    torch.set_num_threads(1)
    calls, call_hook = count(), Runner.call_hook

    def killing(*given, **options):
        if next(calls) == kill.call:
            _strike(kill.size)
        call_hook(*given, **options)

    with (
        open(folder / f'{os.getpid()}.txt', 'w') as log,
        redirect_stdout(log),
        redirect_stderr(log),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(folder)
        patch.setattr('mmengine.runner.runner.collect_env', dict)
        patch.setattr('mmengine.runner.loops.time.sleep', lambda _: None)
        patch.setattr(Runner, 'call_hook', killing)
        if not torch.cuda.is_available():  # scale losses on the CPU
            scaler = partial(torch.amp.GradScaler, device='cpu')
            patch.setattr(f'{AMP}.GradScaler', scaler)
            patch.setattr(f'{AMP}.is_cuda_available', lambda: True)
        run_tool(patch, ROOT / 'tools/train.py', *words)


def _strike(size):
    if size is None:
        os.kill(os.getpid(), signal.SIGKILL)
    # Python ignores this signal, whose default is to end the process
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
