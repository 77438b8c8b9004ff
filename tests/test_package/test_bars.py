# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from io import StringIO

import pytest
from rich import get_console

from mmclca.utils.messages import track


@pytest.mark.parametrize('is_terminal', [True, False])
def test_bars_are_drawn_where_somebody_sees_them(monkeypatch, is_terminal):
    file, drawn = StringIO(), []

    def draw_bar(sequence, *_):
        drawn.append(sequence)
        return iter(sequence)

    file.isatty = lambda: is_terminal
    monkeypatch.setattr(get_console(), '_file', file)
    monkeypatch.setattr('mmpretrain.utils.track', draw_bar)
    assert [*track([1, 2], 'title')] == [1, 2]
    assert drawn == [[1, 2]] * is_terminal and not file.getvalue()
