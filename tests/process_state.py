# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Global state of the process, restored after each test."""

import logging
import os
import random
import resource
import sys
import warnings
from contextlib import contextmanager
from unittest.mock import patch

import cv2
import mmengine.registry
import mmpretrain.registry
import numpy as np
import sklearn.linear_model  # noqa: F401, scipy adds warning filters
import torch
from matplotlib import _pylab_helpers, rcParams
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope, Registry
from mmengine.runner import CheckpointLoader
from mmengine.utils import ManagerMixin
from torch.backends import cudnn

import mmclca.registry

REGISTRIES = {
    registry
    for module in (mmengine.registry, mmpretrain.registry, mmclca.registry)
    for registry in vars(module).values()
    if isinstance(registry, Registry)
}
# getters and setters of torch settings
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
)


def register_all():
    """Fill the registries before the first test.

    Filled later, they would be emptied again after the test.
    """
    for registry in REGISTRIES:
        registry.import_from_location()


def quiet_loggers():
    """Make loggers cheap: mmengine logs each module, torch has many loggers.

    Pytest adds its handlers to loggers that do not propagate, for each test.
    """
    logging.disable(logging.DEBUG)
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith('torch'):
            logger.propagate = True
    logging.getLogger('torch.__trace').disabled = True  # tracing is verbose


def _managed(kind=ManagerMixin):
    """Yield the classes with global instances in mmengine."""
    for child in kind.__subclasses__():
        yield child
        yield from _managed(child)


def _containers():
    """Return the global dicts and lists extended by tests."""
    dicts = [registry.module_dict for registry in REGISTRIES]
    return [os.environ, sys.path, *dicts]


def _put_back(container, copy):
    if container != copy:
        container.clear()
        add = container.extend if container is sys.path else container.update
        add(copy)


@contextmanager
def kept():
    """Restore folder, paths, registries and torch settings after a context."""
    folder = os.getcwd()
    copies = [(container, container.copy()) for container in _containers()]
    instances = [(kind, kind._instance_dict.copy()) for kind in _managed()]
    values = [(put, get()) for get, put in SETTINGS]
    drawing = dict(dict.items(rcParams))  # no validation
    with cudnn.flags(enabled=cudnn.enabled):
        yield
    _pylab_helpers.Gcf.destroy_all()
    dict.update(rcParams, drawing)
    os.chdir(folder)
    for container, copy in copies:
        _put_back(container, copy)
    for kind, copy in instances:
        kind._instance_dict = copy
    for put, value in values:
        put(value)


def outputs(before=None):
    """Return standard streams, and handlers and their streams by logger.

    With an earlier result ``before``, loggers created since are left out.
    Torch configures its loggers at their first use.
    """
    loggers = dict(logging.root.manager.loggerDict, root=logging.root)
    loggers |= MMLogger._instance_dict
    found = dict(streams=[sys.stdout, sys.stderr])
    for name in {*loggers} & {*(before or loggers)}:
        if name.startswith('torch'):
            continue
        handlers = vars(loggers[name]).get('handlers', [])
        streams = [vars(one).get('stream') for one in handlers]
        found[name] = [*handlers, *streams]
    return found


def settings():
    """Process settings changed by some libraries."""
    return dict(
        environment=dict(os.environ),
        filters=[*warnings.filters],
        limits=resource.getrlimit(resource.RLIMIT_NOFILE),
        opencv_threads=cv2.getNumThreads(),
        scope=DefaultScope.get_current_instance(),
        schemes=dict(CheckpointLoader._schemes),
        start=torch.multiprocessing.get_start_method(allow_none=True),
        torch=[get() for get, _ in SETTINGS],
    )


def seed_all(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)


def compiling():
    """Pretend to compile, within a context.

    First compile once, because Dynamo records torch functions at its first
    use, and one will be replaced.
    """
    torch.compile(lambda x: torch.neg(x), backend='eager')(torch.ones(1))
    return patch.object(torch.compiler, 'is_compiling', lambda: True)
