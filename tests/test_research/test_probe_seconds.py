# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Seconds of the linear probe by the number of photos."""

import probe_seconds
import pytest


def test_row_has_a_value_per_title(monkeypatch):
    monkeypatch.setattr(probe_seconds, 'WIDTH', 24)
    monkeypatch.setattr(probe_seconds, 'COLUMNS', 16)
    monkeypatch.setattr(probe_seconds, 'LATE', 8)
    row = probe_seconds.measure(24, views=2, classes=4, threads=1)
    assert len(row) == len(probe_seconds.TITLES)
    assert row[:2] == [24, 2] and min(row) > 0


@pytest.mark.slow
def test_each_number_of_photos_has_a_row(monkeypatch, capsys):
    words = 'probe_seconds.py', '12', '24', '--classes', '2'
    monkeypatch.setattr('sys.argv', [*words])
    probe_seconds.main()
    titles, *rows = capsys.readouterr().out.splitlines()
    assert titles.split()[0] == 'photos'
    assert [int(row.split()[0]) for row in rows] == [12, 24]
