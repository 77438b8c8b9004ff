# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A killed fit leaves a complete model, the previous or the new one."""

import multiprocessing
import os
import shutil
import sys
from fnmatch import fnmatch
from functools import partial

import pytest
import torch

import mmclca
from mmclca.fitting import FittedModel
from mmclca.utils.files import PARTIAL

CHANGES = {'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir'}
KILLED = 9
# fork from a process without threads
PROCESSES = multiprocessing.get_context('forkserver')
PROCESSES.set_forkserver_preload(['mmclca.fitting'])
STEP = 16
STARTS = (0, 2, 6, 9, 13)  # a third of all moments


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


def killed_at(number, command, folder):
    """Run a command in a process killed before its n-th change of a file.

    Return whether there were so many changes.
    """
    process = PROCESSES.Process(target=run, args=(number, command, folder))
    process.start()
    process.join()
    assert process.exitcode in (0, KILLED)
    return process.exitcode == KILLED


def run(number, command, folder):
    left = iter(range(number))

    def hook(event, arguments):
        if is_change(event, arguments, folder) and next(left, None) is None:
            os._exit(KILLED)

    sys.addaudithook(hook)
    torch.set_num_threads(1)
    command()


@pytest.mark.slow
@pytest.mark.parametrize('start', STARTS)
@pytest.mark.parametrize('command', (fit, refit, add_class))
def test_model_is_complete_if_a_command_is_killed(
    place, noted, tmp_path, command, start, capsys
):
    folder = tmp_path / 'model'
    number = start
    while True:
        if command is not fit:
            shutil.copytree(place / 'model', folder)
        if not killed_at(number, partial(command, place, folder), folder):
            break
        if command is not fit or (folder / 'model.pth').exists():
            check_whole(folder, place)
        again = command(place, folder)
        assert ('larch' in again.classes) == (command is add_class)
        assert again.predict(place / 'larch' / '0.png')
        assert not [*folder.rglob(PARTIAL)]
        shutil.rmtree(folder)
        number += STEP
    assert number > STEP


def check_whole(folder, place):
    model = FittedModel(folder)
    assert model.predict(place / 'larch' / '0.png')[0]['pred_class']
