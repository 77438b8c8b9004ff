# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""MMPretrain's own tools, on configs of ours."""

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib
import mmcv
import pytest
from tiny_run import ROOT

matplotlib.use('agg')
TOOLS = Path(find_spec('mmpretrain').origin).parent / '.mim/tools'
NAME = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
CONFIG = ROOT / 'configs/clca' / NAME


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Runs a tool; gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(tool, *arguments):
        words = [tool, *map(str, arguments)]
        monkeypatch.setattr(sys, 'argv', words)
        runpy.run_path(str(TOOLS / tool))['main']()
        return capsys.readouterr().out

    return run


def test_vis_scheduler(run):
    """On a stand-in for the data set, whose metainfo is None."""
    options = ('--dataset-size', 240, '--save-path', 'lr.png', '--not-show')
    said = run('visualization/vis_scheduler.py', CONFIG, *options)
    assert 'Iterations per epoch: 7' in said
    assert mmcv.imread('lr.png').std() > 10


def test_get_flops(run):
    said = run('analysis_tools/get_flops.py', CONFIG, '--shape', 64)
    assert 'backbone.layers.11' in said and 'Input shape' in said
