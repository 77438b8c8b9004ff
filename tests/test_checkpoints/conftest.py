# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import re
from unittest.mock import patch

import pytest
import torch
from foreign_models import Call, write
from golden import golden
from mmengine.logging import MMLogger
from tiny_model import write_tiny

from mmclca.checkpoints import load as loading
from mmclca.checkpoints.report import LoadReport


@pytest.fixture
def load(tmp_path):
    """Function to load weights into a model by a file."""

    def load(weights, model, strict=False):
        path = write(tmp_path / 'weights.pth', weights)
        loading.load(model, path, strict)
        return model

    return load


@pytest.fixture
def log(request):
    """Log lines from all mmengine loggers."""
    lines = []

    def note(_, record):
        lines.append(record.getMessage())

    MMLogger.get_instance(request.node.nodeid)  # a new current logger
    with patch.object(MMLogger, 'callHandlers', note):
        yield lines


@pytest.fixture
def report_is_golden(request):
    """Compare the load reports in a test with the golden file."""
    told, log = [], LoadReport.log

    def note(report, level):
        told.append(report.describe().replace(report.source, 'FILE') + '\n')
        log(report, level)

    with patch.object(LoadReport, 'log', note):
        yield
    case = re.sub(r'\W+', '_', request.node.name.removeprefix('test_'))
    name = f'loads/{request.path.stem}/{case.strip("_")}.txt'
    assert told and ''.join(told) == golden(name, ''.join(told))


@pytest.fixture
def sprung(tmp_path):
    """Path of a file created by the trap."""
    return tmp_path / 'sprung'


@pytest.fixture
def trap(sprung):
    """Object that creates a file when unpickled."""
    return Call(os.system, (f'touch {sprung}',))


@pytest.fixture(scope='session')
def tiny(process, tmp_path_factory):
    """Read-only folder with tiny.py, tiny.pth and tiny.safetensors."""
    folder = tmp_path_factory.mktemp('tiny')
    write_tiny(folder)
    return folder


@pytest.fixture
def change(tiny, tmp_path):
    """Function to write evil.pth, the tiny checkpoint with changes."""

    def change(cfg=None, weights={}, **meta):
        loaded = torch.load(tiny / 'tiny.pth', weights_only=True)
        loaded['meta'].update(meta)
        if cfg is not None:
            loaded['meta']['cfg'] = cfg
        loaded['state_dict'].update(weights)
        return write(tmp_path / 'evil.pth', loaded)

    return change
