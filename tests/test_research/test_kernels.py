# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Time by kernel of reduced models."""

import kernels
import pytest


@pytest.mark.slow
def test_each_model_has_its_slowest_kernels(monkeypatch, capsys):
    words = 'kernels.py', '--img-size', '32', '--batch', '1', '2'
    words += '--passes', '1', '--rows', '3', '--methods', 'none', 'EViT'
    monkeypatch.setattr('sys.argv', [*words, '--clca'])
    kernels.main()
    parts = capsys.readouterr().out.strip().split('\n\n')
    assert [part.partition(':')[0] for part in parts] == [
        'none, batch 1',
        'EViT 0.5 + CLCA, batch 1',
        'none, batch 2',
        'EViT 0.5 + CLCA, batch 2',
    ]
    for part in parts:
        _, titles, *rows = part.splitlines()
        assert titles.split() == ['kernel', 'ms', 'calls']
        milliseconds = [float(row.split()[-2]) for row in rows]
        assert len(rows) == 3
        assert milliseconds == sorted(milliseconds, reverse=True)
