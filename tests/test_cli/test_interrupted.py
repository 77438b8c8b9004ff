# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Ctrl-C ends a tool with one line of advice on how to resume."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from quick_runs import make_quick
from tiny_model import write_tiny
from tiny_run import ROOT, environment, exit_code, write_run

from mmclca import cli
from mmclca.apis import TokenReductionInferencer
from mmclca.cli.main import main

LONG = ('--cfg-options', 'train_cfg.max_epochs=100000')


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.fixture
def end(tmp_path, monkeypatch, capfd):
    """Run a command; return exit code and last error line."""
    write_tiny(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.setattr('mmengine.runner.runner.collect_env', dict)
    make_quick(monkeypatch)

    def end(*words):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
        code = exit_code(main)
        *_, line = capfd.readouterr().err.splitlines()
        return code, line

    return end


@pytest.mark.parametrize(
    'words, where, said',
    [
        ('train tiny.py', 'mmengine.runner.Runner.train', 'Add --resume'),
        ('train tiny.py', 'mmclca.engine.runner.build_runner', '--resume'),
        ('test tiny.py tiny.pth', 'mmengine.runner.Runner.test', 'again'),
        ('sweep a.py', 'mmclca.sweep.grid.read_grid', 'to resume'),
        ('fit data', 'mmclca.fitting.fit', 'same command to resume'),
        (
            'get-flops tiny.py',
            'mmclca.cli.commands.get_flops.count_cost',
            'Stopped.',
        ),
    ],
)
def test_command_exits_with_advice_if_interrupted(
    words, where, said, end, monkeypatch
):
    monkeypatch.setattr(where, interrupt)
    code, line = end(*words.split())
    assert code == 130
    assert line.startswith('Stopped.') and said in line


def test_predict_writes_finished_predictions_if_interrupted(end, monkeypatch):
    def stream(self, paths, *options):
        yield from list(whole(self, paths, *options))[:3]
        raise KeyboardInterrupt

    whole = TokenReductionInferencer.stream
    monkeypatch.setattr(TokenReductionInferencer, 'stream', stream)
    code, line = end('predict', 'tiny.pth', 'data', '--out', 'out.csv')
    assert code == 130
    assert line == 'Stopped. Classified 3 of 16 photos. Saved out.csv'
    assert len(Path('out.csv').read_text().splitlines()) == 4


def test_debug_keeps_traceback_if_interrupted(monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['tool.py', '--debug'])
    with pytest.raises(KeyboardInterrupt):
        cli.run(interrupt)


@pytest.mark.slow
def test_training_exits_with_advice_if_process_is_interrupted(tmp_path):
    write_run(tmp_path)
    process = subprocess.Popen(
        [sys.executable, ROOT / 'tools/train.py', 'tiny.py', *LONG],
        cwd=tmp_path,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    next(line for line in process.stdout if 'Epoch(val)' in line)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.rstrip().endswith(
        'Add --resume to the same command to resume.'
    )
    assert 'Traceback' not in said
