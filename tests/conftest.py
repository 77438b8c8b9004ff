# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import gc
import logging
import os
import sys
from pathlib import Path

import pytest
import torch
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers here
sys.path.append(str(Path(__file__).parents[1] / 'tools/research'))
sys.path.append(str(Path(__file__).parents[1] / 'tools/dev'))

from process_state import kept, register_all, seed_all
from quick_runs import make_quick
from tiny_run import train_by_tool

# files and tests that are not to be skipped, as CI sets it
MUST_RUN = tuple(os.environ.get('MMCLCA_MUST_RUN', '').split())


def _failed_if_skipped(report):
    if MUST_RUN and report.skipped and report.nodeid.startswith(MUST_RUN):
        _, _, reason = report.longrepr
        report.outcome = 'failed'
        report.longrepr = f'{report.nodeid} must run here. {reason}'
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _failed_if_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """For what a whole file needs."""
    return _failed_if_skipped((yield))


@pytest.fixture(scope='session', autouse=True)
def process():
    """Registries filled, runs without what takes seconds in each."""
    torch.set_num_threads(1)  # of models so small, a second one only waits
    register_all()
    gc.freeze()  # what is imported stays
    gc.set_threshold(20_000, 20, 50)  # as they are, models cause a lot of it
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch)
        yield


@pytest.fixture(scope='module', autouse=True)
def state_of_module(process):
    """What fixtures of a module change is the module's own."""
    with kept():
        yield


@pytest.fixture(autouse=True)
def state_of_test(state_of_module):
    """Each test draws the same numbers, and leaves no trace.

    In whatever order they run.
    """
    seed_all(0)
    with kept():
        yield


@pytest.fixture
def nothing_is_compiled_yet(monkeypatch):
    """Compilers begin anew: of one function they make few graphs a process."""
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    trace = logging.getLogger('torch.__trace')  # pytest would write it all
    monkeypatch.setattr(trace, 'disabled', True)


@pytest.fixture(scope='session')
def trained(process, tmp_path_factory):
    """Folder of the one trained run, of ``train_by_tool``: only to read."""
    root = tmp_path_factory.getbasetemp()
    if 'PYTEST_XDIST_WORKER' in os.environ:  # all processes have one
        root = root.parent
    folder = root / 'trained'
    with FileLock(root / 'trained.lock'), kept():
        if not folder.exists():
            train_by_tool(folder)
    return folder


@pytest.fixture(scope='session')
def shared():
    """Folder of real leaves and weights beside the checkout, if there."""
    folder = Path(__file__).parents[2] / 'shared'
    if not folder.is_dir():
        pytest.skip(
            f'real leaves and weights are missing: put data/ and weights/ '
            f'into {folder}'
        )
    return folder
