# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
import torch
from tiny_run import ROOT, run_tool

TOOL = ROOT / 'tools/benchmark/onnx_runtime.py'


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(torch, 'set_num_threads', lambda _: None)

    return partial(run_tool, monkeypatch, TOOL)


@pytest.mark.slow
def test_page(run, tmp_path, capsys):
    run(
        *('--arch', 'deit-tiny', '--img-size', 64, '--batch', 2),
        *('--methods', 'none', 'EViT', '--rounds', 2),
        *('--out', tmp_path / 'page'),
    )
    text = (tmp_path / 'page.md').read_text()
    assert 'ONNX Runtime 1.' in text
    lines = [line for line in text.splitlines() if line.startswith('|')]
    assert '\n'.join(lines[2:]) in capsys.readouterr().out
    rows = [line.strip('| ').split(' | ') for line in lines[2:]]
    assert [row[0] for row in rows] == ['none', 'EViT']
    assert [row[2] for row in rows] == ['no', 'yes']
    for row in rows:
        eager, onnx, ratio, int8, ratio8 = map(float, row[4:])
        assert ratio == pytest.approx(onnx / eager, rel=0.5)
        assert ratio8 == pytest.approx(int8 / eager, rel=0.5)


def test_size_that_is_no_multiple_of_a_patch(run, capsys):
    with pytest.raises(SystemExit):
        run('--img-size', 225)
    assert '--img-size 225: a multiple of 16' in capsys.readouterr().err
