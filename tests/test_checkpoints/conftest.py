# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import os
from unittest.mock import patch

import pytest
from mmengine.logging import MMLogger


@pytest.fixture
def log(request):
    """Lines that mmengine logs, by whichever of its loggers."""
    lines = []

    def note(_, record):
        lines.append(record.getMessage())

    MMLogger.get_instance(request.node.nodeid)  # the current one, as new
    with patch.object(MMLogger, 'callHandlers', note):
        yield lines


class Trap:
    """Runs a command when it is unpickled."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture
def sprung(tmp_path):
    """A file that exists once a trap has run."""
    return tmp_path / 'sprung'


@pytest.fixture
def trap(sprung):
    return Trap(f'touch {sprung}')
