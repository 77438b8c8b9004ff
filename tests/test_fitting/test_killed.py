# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A killed fit leaves a complete model, and resumes to the same bits."""

import json
import multiprocessing
import os
import shutil
import signal
import sys
from fnmatch import fnmatch
from functools import partial
from itertools import count

import pytest

import mmclca
from mmclca.evaluation.cost import count_config
from mmclca.fitting import FittedModel
from mmclca.utils.files import PARTIAL

CHANGES = {'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir'}
KILLED = 9
# without imports
PROCESSES = multiprocessing.get_context('fork')
# times and dates
VARIES = {'log.txt', 'fit.json', 'report.html'}


@pytest.fixture
def quick(no_onnx, monkeypatch):
    """Count the cost of each config once, in all processes."""
    costs = {}

    def count(config):
        name = str(config)
        costs[name] = costs.get(name) or count_config(config)
        return costs[name]

    monkeypatch.setattr('mmclca.fitting.cost.count_config', count)


def fit(place, out, **options):
    weights = place / 'tiny.safetensors'
    fixed = dict(runtime='pytorch', budget='0.02GMACs', probe_only=True)
    fixed['weights'] = weights
    return mmclca.fit(place / 'photographs', out, **fixed, **options)


def refit(place, out):
    return fit(place, out, folds=3, overwrite=True)


def add_class(place, out):
    model = FittedModel(out)
    model.add_class(place / 'larch')
    return model


def is_change(event, arguments, folder):
    """Whether an audit event writes into a folder."""
    path = str(arguments[0]) if arguments else ''
    if not path.startswith(str(folder)):
        return False
    if event == 'open' and not fnmatch(os.path.basename(path), PARTIAL):
        return 'r' not in (arguments[1] or 'r')
    return event in CHANGES


def kill(random, command, folder):
    """Run a command in a process killed at a change of a file, or any time.

    Return whether it was killed before its end.
    """
    process = PROCESSES.Process(target=run, args=(random, command, folder))
    process.start()
    process.join(60)
    process.kill()
    process.join()
    # a fork of a process with threads may hang or crash: two more kills
    assert process.exitcode <= 0 or process.exitcode == KILLED
    return process.exitcode != 0


def run(random, command, folder):
    left = iter(range(random.randrange(80)))

    def hook(event, arguments):
        if is_change(event, arguments, folder) and next(left, None) is None:
            os._exit(KILLED)

    if random.random() < 0.5:
        sys.addaudithook(hook)
    else:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.01, 2))
    command()


@pytest.fixture
def attempt(place, noted, quick, tmp_path, capsys):
    """Kill a command several times, resume it, and compare the files."""
    numbers, expected = count(), {fit: place / 'model'}

    def new_folder(command):
        folder = tmp_path / f'{next(numbers)}'
        if command is not fit:
            shutil.copytree(place / 'model', folder)
        return folder

    def attempt(random, command):
        if command not in expected:
            expected[command] = new_folder(command)
            command(place, expected[command])
        folder = new_folder(command)
        for _ in range(random.randint(2, 3)):
            kill(random, partial(command, place, folder), folder)
            if command is not fit or (folder / 'model.pth').exists():
                assert FittedModel(folder).predict(place / 'larch/0.png')
        command(place, folder)
        compare(folder, expected[command])
        shutil.rmtree(folder)

    return attempt


def compare(folder, expected):
    """Compare all bits of two models, except for times and dates."""
    ours, theirs = (
        {
            str(file.relative_to(place)): file.read_bytes()
            for file in place.rglob('*')
            if file.is_file()
        }
        for place in (folder, expected)
    )
    assert ours.keys() == theirs.keys()
    differ = {name for name in ours if ours[name] != theirs[name]}
    assert differ <= VARIES
    assert plain(ours['fit.json']) == plain(theirs['fit.json'])


def plain(content):
    """Omit times, dates and the checksum from fit.json."""
    facts = json.loads(content)
    for varying in facts, facts['probe']:
        varying.pop('seconds')
    del facts['date'], facts['cost'], facts['crc32']
    return facts


# one interrupted fit is a quick test in test_fit.py
@pytest.mark.hostile
@pytest.mark.parametrize(
    'command, tries', [(fit, 30), (refit, 15), (add_class, 15)]
)
def test_killed_command_resumes_to_the_same_model(
    attempt, command, tries, attack
):
    name = f'{command.__name__}: killed, then the same model'
    attack.run(name, tries, partial(attempt, command=command))
