# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Learning-rate pictures by MMPretrain's tool, and print_config."""

from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import mmcv
import pytest
from mmengine.config import Config
from tiny_run import ROOT, run_tool

matplotlib.use('agg')
NAME = 'clca-evit-kr25_deit-tiny-p16_1xb32-50e_leaf40-224px.py'
CONFIG = ROOT / 'configs/clca' / NAME


DECAY = 'lf-evit-kr50_deit-tiny-p16_1xb32-20e_leaf40-224px'
SCHEDULER = 'visualization/vis_scheduler.py'
SIZE = ('--dataset-size', 240, '--not-show')


def test_scheduler_tool_draws_layer_decay_config_by_name(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.chdir(tmp_path)
    draw = partial(run_tool, monkeypatch, ROOT / 'tools' / SCHEDULER)
    draw(DECAY, *SIZE, '--save-path', 'lr.png')
    assert 'Iterations per epoch: 7' in capsys.readouterr().out
    (line,) = plt.gca().lines
    values = line.get_ydata()
    assert len(values) == 7 * 20 and 7 < values.argmax() <= 14
    assert mmcv.imread('lr.png').std() > 10
    assert [path.name for path in tmp_path.iterdir()] == ['lr.png']
    with pytest.raises(FileNotFoundError, match="named 'gone.py'"):
        draw('gone.py', *SIZE)
    with pytest.raises(FileNotFoundError, match='classes.txt'):
        draw(DECAY, '--not-show')


def test_printed_config_is_valid(tmp_path, monkeypatch, capsys):
    long = 'a_name_longer_than_a_line_of_a_terminal_' * 4
    tool = ROOT / 'tools/misc/print_config.py'
    run_tool(monkeypatch, tool, CONFIG, '--cfg-options', f'work_dir={long}')
    wanted = Config.fromfile(CONFIG)
    wanted.work_dir = long
    whole = Config.fromstring(capsys.readouterr().out, '.py')
    assert whole.to_dict() == wanted.to_dict()
