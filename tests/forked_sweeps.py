# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweeps of cheap runs, whose processes are forks: no imports are repeated."""

import os
import runpy
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

from mmengine.config import Config
from submitit.local import local
from sweep_results import KEY, make_task, result_of
from tiny_run import exit_code

from mmclca.cli.commands import sweep
from mmclca.sweep import execution
from mmclca.sweep.results import config_hash
from mmclca.utils.files import replace_text

KEYS = [replace(KEY, seed=seed) for seed in range(3)]
CFG = Config()


def fork(function):
    """Call a function in a fork, which ends with its exit code."""
    if child := os.fork():
        return child
    code = 1
    try:
        sys.stdout = sys.stderr = StringIO()
        code = exit_code(function) or 0
    finally:
        os._exit(code)


class Fork:
    """Replacement of ``Popen`` in submitit: a module runs in a fork.

    ``numbers`` are process numbers for submitit, None for the real ones.
    """

    numbers = None

    def __init__(self, command, env, **_):
        number = self.numbers and next(self.numbers)

        def run_module():
            os.environ.update(env)
            if number:
                os.getpid = lambda: number
            sys.argv = command[command.index('-m') + 1 :]
            runpy.run_module(sys.argv[0], run_name='__main__')

        self.returncode = None
        self.child = fork(run_module)
        self.pid = number or self.child

    def poll(self):
        if self.returncode is None:
            self.returncode = poll(self.child)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.child, number)


def poll(child):
    """Return the exit code of a child process, None while it runs."""
    ended, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def patch_sweeps(patch, log):
    """Replace grids, runs and processes; ``log`` names finished runs."""

    def logged(path, text):
        replace_text(path, text)
        if path.suffix == '.json':
            with open(log, 'a') as file:
                file.write(f'{path.parents[1].name}\n')

    configs = dict.fromkeys(KEYS, CFG)
    grid = SimpleNamespace(
        runs=[make_task(CFG, None, key).run for key in KEYS],
        compose_configs=lambda: configs,
        keep_checkpoints=False,
    )
    patch.setattr('mmclca.sweep.grid.read_grid', lambda _: grid)
    patch.setattr('mmclca.sweep.inputs.check_inputs', lambda _: None)
    patch.setattr('mmclca.sweep.jobs.POLL', 0.01)
    patch.setattr(local.subprocess, 'Popen', Fork)
    patch.setattr(execution, 'measure', measure)
    patch.setattr(execution, 'replace_text', logged)


def measure(cfg, work_dir):
    """Write checkpoints; return a result without its key."""
    for epoch in range(4):
        time.sleep(0.01)
        replace_text(work_dir / f'epoch_{epoch}.pth', 'weights')
    result = expected(KEY)
    del result['run']
    return result


def expected(key):
    return result_of(key, config_hash=config_hash(CFG))


def start(root, prepare):
    """Start the command of a sweep in its process group; return its pid."""
    fixed = dict(grid=Path('grid.py'), work_dir=root, report=False)
    local = dict(executor='local', jobs=2, threads=1, executor_options={})

    def command():
        os.setsid()
        prepare()
        return sweep.main(SimpleNamespace(**fixed, **local))

    return fork(command)


def wait(pid, seconds=20):
    """Wait for a child process; return its exit code, None if it hangs."""
    end = time.monotonic() + seconds
    while (code := poll(pid)) is None and time.monotonic() < end:
        time.sleep(0.01)
    return code
