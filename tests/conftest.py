# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import gc
import os
import signal
import sys
from functools import cache
from inspect import getfullargspec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers here
sys.path.append(str(Path(__file__).parents[1] / 'tools/research'))
sys.path.append(str(Path(__file__).parents[1] / 'tools/dev'))

from hostile import Attack, write_table
from process_state import kept, quiet_loggers, register_all, seed_all
from quick_runs import make_quick
from tiny_run import train_by_tool

from mmclca.utils.torch_versions import COMPILES, has_torch

# test files and tests never to be skipped, set in CI
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
    """Apply the rule to skipped test files."""
    return _failed_if_skipped((yield))


def pytest_terminal_summary(terminalreporter):
    write_table(terminalreporter)


@pytest.fixture
def attack(record_property):
    """Count the tries of an attack that held."""
    return Attack(record_property)


@pytest.fixture(scope='session', autouse=True)
def process(tmp_path_factory):
    """Fill registries, and save time in threads and garbage collection.

    Measured latencies are not kept for other runs.
    """
    # background jobs of a shell ignore it, and so would processes of tests
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)  # faster for tiny models
    register_all()
    quiet_loggers()
    gc.freeze()  # exclude imported modules
    gc.set_threshold(20_000, 20, 50)  # models create many objects
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('TORCH_HOME', str(tmp_path_factory.mktemp('torch')))
        # 0.5 s for each dataset, with the objects of all earlier tests
        no_collection = SimpleNamespace(collect=lambda: None)
        patch.setattr('mmengine.dataset.base_dataset.gc', no_collection)
        # called for each call of an attention
        read = cache(getfullargspec)
        patch.setattr('mmengine.utils.misc.getfullargspec', read)
        yield


@pytest.fixture(scope='module', autouse=True)
def state_of_module(process):
    """Restore the process after each module, for its fixtures."""
    with kept():
        yield


@pytest.fixture(autouse=True)
def state_of_test(state_of_module):
    """Seed each test, and restore the process after it, for any order."""
    seed_all(0)
    with kept():
        yield


@pytest.fixture
def quick_runner(monkeypatch):
    """Start runs of mmengine in less time."""
    make_quick(monkeypatch)


@pytest.fixture
def no_onnx(monkeypatch):
    """Let ``fit`` measure latency as if ONNX Runtime were not installed."""
    monkeypatch.setattr('mmclca.benchmark.timing.NEEDED', ('no_package',))


@pytest.fixture(scope='session')
def exporter():
    """Skip tests that export a model, if torch is too old."""
    if not has_torch(COMPILES):
        pytest.skip(f'needs torch {COMPILES}')


@pytest.fixture
def nothing_is_compiled_yet():
    """Reset compilers, which compile a function a few times per process."""
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()


@pytest.fixture(scope='session')
def trained(process, tmp_path_factory):
    """Read-only folder of a run trained by ``train_by_tool``."""
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
    """Folder of real leaves and weights next to the checkout."""
    folder = Path(__file__).parents[2] / 'shared'
    if not folder.is_dir():
        pytest.skip(
            f'real leaves and weights are missing: put data/ and weights/ '
            f'into {folder}'
        )
    return folder
