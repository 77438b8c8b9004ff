# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from tiny_run import ROOT, end_of

TOOL = ROOT / 'tools/research/ats_batches.py'


def test_comparisons_are_counted(monkeypatch, capsys):
    assert end_of(monkeypatch, TOOL, '--comparisons', '8') == 0
    assert ' of 8 images' in capsys.readouterr().out
