# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Whenever a fit is killed, there is a whole model, the old or the new one."""

import multiprocessing
import os
import shutil
import sys
from contextlib import redirect_stdout
from fnmatch import fnmatch
from functools import partial
from io import StringIO

import pytest
import torch
from tiny_photographs import write_photographs, write_weights

import mmclca
from mmclca.fitting import FittedModel
from mmclca.utils.files import PARTIAL

CHANGES = {'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir'}
KILLED = 9
# of one that has run nothing else, and no threads
PROCESSES = multiprocessing.get_context('forkserver')
PROCESSES.set_forkserver_preload(['mmclca.fitting'])
STEP = 16
STARTS = (0, 2, 6, 9, 13)  # a third of the moments


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A model of four classes, and photographs of a fifth in ``larch``."""
    place = tmp_path_factory.mktemp('killed')
    torch.manual_seed(0)
    write_weights(place)
    write_photographs(place)
    new = write_photographs(place / 'new', seed=2)
    (new / 'ash').rename(place / 'larch')
    with redirect_stdout(StringIO()):
        fit(place, place / 'fitted')
    return place


def fit(place, out, **options):
    weights = place / 'tiny.safetensors'
    options = dict(weights=weights, probe_only=True) | options
    return mmclca.fit(place / 'photographs', out, **options)


def refit(place, out):
    return fit(place, out, folds=3, overwrite=True)


def add_class(place, out):
    model = FittedModel(out)
    model.add_class(place / 'larch')
    return model


def is_change(event, arguments, folder):
    """Whether an event of Python writes into a folder."""
    path = str(arguments[0]) if arguments else ''
    if not path.startswith(str(folder)):
        return False
    if event == 'open' and not fnmatch(os.path.basename(path), PARTIAL):
        return 'r' not in (arguments[1] or 'r')
    return event in CHANGES  # those of partial files, which are named last


def killed_at(number, command, folder):
    """Run a command in a process that ends before its n-th change.

    Returns:
        bool: Whether there were as many.
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
def test_killed(place, tmp_path, command, start, capsys):
    folder = tmp_path / 'model'
    number = start
    while True:
        if command is not fit:
            shutil.copytree(place / 'fitted', folder)
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
