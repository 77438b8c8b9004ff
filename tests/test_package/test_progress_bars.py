# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from io import StringIO

import pytest
from rich import get_console

from mmclca.utils.messages import Bar, track


@pytest.mark.parametrize('is_terminal', [True, False])
def test_track_draws_a_bar_if_terminal(monkeypatch, is_terminal):
    file = StringIO()
    file.isatty = lambda: is_terminal
    monkeypatch.setattr(get_console(), '_file', file)
    assert [*track([1, 2], 'title')] == [1, 2]
    assert ('100%' in file.getvalue()) is is_terminal


def test_bar_reports_its_progress_if_watched(monkeypatch, capsys):
    seen = []
    watch = staticmethod(lambda *facts: seen.append(facts))
    monkeypatch.setattr(Bar, 'watch', watch)
    assert [*track([1, 2], 'title')] == [1, 2]
    assert seen[-1][:2] == ('title', 1.0)
    assert capsys.readouterr() == ('', '')
