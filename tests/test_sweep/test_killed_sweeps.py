# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweeps complete each run once, whatever happens to their processes."""

import json
import os
import pickle
import resource
import signal
import time
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest
from forked_sweeps import KEYS, Fork, expected, patch_sweeps, start, wait
from hostile import few_and_many

from mmclca.sweep.execution import DONE


@pytest.fixture
def run(attack, tmp_path, monkeypatch):
    """Start up to ``most`` sweeps, disturb them, and repeat the command.

    ``prepare`` is called in their processes, ``disturb`` in this one.
    """
    numbers, log = count(), tmp_path / 'log'
    patch_sweeps(monkeypatch, log)

    def attempt(random, prepare, disturb, most):
        root = tmp_path / f'{next(numbers)}'
        log.write_text('')
        number, given = random.randint(1, most), (random, root)
        pids = [start(root, lambda: prepare(*given)) for _ in range(number)]
        try:
            disturb(*given, pids)
            codes = [wait(pid) for pid in pids]
            assert None not in codes, 'a sweep hangs'
            if 0 not in codes:
                finish(root)
            check_complete(root, log)
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)

    def run(name, tries, *given, most=3):
        attack.run(name, tries, lambda random: attempt(random, *given, most))

    return run


def finish(root):
    """Repeat the command while processes of killed sweeps run."""
    codes = [1]
    while codes[-1] and len(codes) < 10:
        codes.append(wait(start(root, lambda: None)))
    assert codes[-1] == 0, f'not complete: {codes}'


def check_complete(root, log):
    files = [root / f'{key.name}.json' for key in KEYS]
    assert all(map(Path.exists, files)), 'a result is lost'
    found = [json.loads(file.read_text()) for file in files]
    assert found == [expected(key) for key in KEYS], 'a result is damaged'
    times = Counter(log.read_text().split())
    assert max(times.values()) == 1, f'runs were repeated: {times}'
    left = [*root.glob('.*'), *root.glob('*.bad-*'), *root.rglob('*.pth')]
    assert not left, left


def nothing(*_):
    """Do not disturb."""


def kill(random, root, pids, spared=()):
    """Kill sweeps and their children at random moments."""
    for _ in range(random.randint(2, 3)):
        time.sleep(random.uniform(0, 0.3))
        found = [pid for pid in members(pids) if pid not in spared]
        with suppress(ProcessLookupError, IndexError):
            os.kill(random.choice(found), signal.SIGKILL)


def kill_children(random, root, pids):
    """Kill jobs, but not their sweep."""
    kill(random, root, pids, spared=pids)


def members(groups):
    """List the processes of process groups, on macOS only the first ones."""
    found = list(groups)
    for place in Path('/proc').glob('[0-9]*'):
        with suppress(ProcessLookupError):
            if os.getpgid(int(place.name)) in groups:
                found.append(int(place.name))
    return sorted(found)


def jump_clock(random, _):
    """Let the clock jump by hours at some call."""
    clock, calls, first = time.time, count(), random.randint(1, 40)
    jump = random.choice((-5, 5)) * 3600
    time.time = lambda: clock() + jump * (next(calls) >= first)


def fill_disk(random, _):
    """Limit the size of files, as on a full disk."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (random.randint(0, 3000), hard))


def use_numbers_again(random, root):
    """Number processes as in a new container, after another sweep."""
    Fork.numbers = count(7)
    (root / 'jobs').mkdir(parents=True, exist_ok=True)
    for number in range(7, 40):
        name = f'jobs/{number}_0_result.pkl'
        (root / name).write_bytes(pickle.dumps(('success', DONE)))


@few_and_many(1, 60)
def test_each_run_completes_once_if_processes_are_killed(run, tries):
    run('sweeps: processes killed', tries, nothing, kill)


@pytest.mark.hostile
@pytest.mark.parametrize(
    'name, prepare, disturb, most',
    [
        ('clock jumps', jump_clock, kill, 3),
        ('disk full', fill_disk, nothing, 3),
        ('equal process numbers', use_numbers_again, kill_children, 1),
    ],
)
def test_each_run_completes_once_on_hostile_computers(
    run, name, prepare, disturb, most
):
    run(f'sweeps: {name}', 30, prepare, disturb, most=most)
