# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
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
