# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What a test may change of its process, and gets back as it was before."""

import logging
import os
import random
import resource
import sys
import warnings
from contextlib import contextmanager
from unittest.mock import patch

import cv2
import matplotlib
import matplotlib.pyplot as plt
import mmengine.registry
import mmpretrain.registry
import numpy as np
import torch
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
# torch's own, as pairs of what reads a setting and what sets it
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
)


def register_all():
    """Fill the registries, which otherwise happens at the first look.

    A test that then took its own entry out again would take out all.
    """
    for registry in REGISTRIES:
        registry.import_from_location()


def _managed(kind=ManagerMixin):
    """The classes whose instances mmengine keeps by name."""
    for child in kind.__subclasses__():
        yield child
        yield from _managed(child)


def _containers():
    """Dicts and lists of the process that tests add to."""
    dicts = [registry.module_dict for registry in REGISTRIES]
    return [os.environ, sys.path, *dicts]


def _put_back(container, copy):
    if container != copy:
        container.clear()
        add = container.extend if container is sys.path else container.update
        add(copy)


@contextmanager
def kept():
    """Undo what changes within: folder, paths, names, settings of torch."""
    folder = os.getcwd()
    copies = [(container, container.copy()) for container in _containers()]
    instances = [(kind, kind._instance_dict.copy()) for kind in _managed()]
    values = [(put, get()) for get, put in SETTINGS]
    with matplotlib.rc_context(), cudnn.flags(enabled=cudnn.enabled):
        yield
    plt.close('all')
    os.chdir(folder)
    for container, copy in copies:
        _put_back(container, copy)
    for kind, copy in instances:
        kind._instance_dict = copy
    for put, value in values:
        put(value)


def outputs():
    """Streams and log handlers of the process."""
    known = logging.root.manager.loggerDict.values()
    loggers = [logging.root, *known, MMLogger.get_instance('foreign')]
    handlers = [one for x in loggers for one in vars(x).get('handlers', ())]
    streams = [vars(one).get('stream') for one in handlers]
    return [sys.stdout, sys.stderr, *handlers, *streams]


def settings():
    """Settings of the process that libraries might change."""
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
    torch.manual_seed(seed)


def compiling():
    """Replace what tells whether a model is compiled, for a context.

    Dynamo notes torch's functions once: before one of them is replaced.
    """
    torch.compile(lambda x: torch.neg(x), backend='eager')(torch.ones(1))
    return patch.object(torch.compiler, 'is_compiling', lambda: True)
