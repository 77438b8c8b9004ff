# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tools in this process."""

import pytest
from tiny_run import ROOT, run_tool


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a tool, such as ``test.py``, and return both output streams."""

    def run(tool, *words):
        run_tool(monkeypatch, ROOT / 'tools' / tool, *words)
        return capsys.readouterr()

    return run
