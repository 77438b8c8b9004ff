# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from io import StringIO

import pytest
from rich import get_console

from mmclca.utils.messages import track


@pytest.mark.parametrize('is_terminal', [True, False])
def test_track_draws_a_bar_if_terminal(monkeypatch, is_terminal):
    file = StringIO()
    file.isatty = lambda: is_terminal
    monkeypatch.setattr(get_console(), '_file', file)
    assert [*track([1, 2], 'title')] == [1, 2]
    assert ('100%' in file.getvalue()) is is_terminal


class Parent:
    """Keep the events that a parent process would get."""

    def __init__(self):
        self.events = []
        self.send = self.events.append


def test_bar_sends_its_progress_if_process_has_a_parent(monkeypatch, capsys):
    parent = Parent()
    monkeypatch.setattr('mmclca.utils.messages.get_parent', lambda: parent)
    assert [*track([1, 2], 'title')] == [1, 2]
    last = parent.events[-1]
    assert (last.title, last.share) == ('title', 1.0)
    assert capsys.readouterr() == ('', '')
