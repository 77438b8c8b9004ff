# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
import re
from unittest.mock import patch

import pytest
from foreign_models import write
from golden import golden
from mmengine.logging import MMLogger

from mmclca.checkpoints.loading import load_checkpoint
from mmclca.checkpoints.releases import WeightSource


@pytest.fixture
def load(tmp_path):
    """Function to load weights into a model by a file."""

    def load(weights, model, strict=False):
        path = write(tmp_path / 'weights.pth', weights)
        load_checkpoint(model, path, strict)
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
    told, end = [], WeightSource.end

    def note(source):
        report = source.report
        told.append(str(report).replace(report.source, 'FILE') + '\n')
        end(source)

    with patch.object(WeightSource, 'end', note):
        yield
    case = re.sub(r'\W+', '_', request.node.name.removeprefix('test_'))
    name = f'loads/{request.path.stem}/{case.strip("_")}.txt'
    assert told and ''.join(told) == golden(name, ''.join(told))


class Trap:
    """Object that runs a command when unpickled."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture
def sprung(tmp_path):
    """Path of a file created by the trap."""
    return tmp_path / 'sprung'


@pytest.fixture
def trap(sprung):
    return Trap(f'touch {sprung}')
