# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command mmclca and its subcommands."""

import re
import shutil
import sys

import pytest
from tiny_photographs import write_photographs, write_weights
from tiny_run import exit_code

from mmclca.checkpoints.error import CheckpointError
from mmclca.cli import verbs
from mmclca.cli.verbs import VERBS, main
from mmclca.fitting import weights


@pytest.fixture
def end(tmp_path, monkeypatch):
    """Run a command in a folder with photos and weights."""
    write_photographs(tmp_path, per_class=2)
    write_weights(tmp_path)
    ash = tmp_path / 'photographs' / 'ash'
    shutil.copytree(ash, tmp_path / 'one' / 'ash')
    (tmp_path / 'table.csv').write_text(
        'file,class\nash/0.png,ash\nash/9.png,elm\n'
    )
    (tmp_path / 'taken').mkdir()
    (tmp_path / 'taken' / 'thesis.tex').touch()
    monkeypatch.chdir(tmp_path)

    def end(*words):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
        return exit_code(main)

    return end


FIT = ('fit', 'photographs', '--weights', 'tiny.safetensors', '--probe-only')
# words, and the object or option named in the error
ERRORS = [
    (('fit', 'gone'), 'gone'),
    (('fit', 'one'), 'two classes'),
    (('fit', 'tiny.safetensors'), 'is a file'),
    (('fit', 'photographs'), '--weights'),
    (('fit', 'photographs', '--weights', 'x.pth'), 'x.pth'),
    ((*FIT, '--budget', '0.001GMACs'), '0.001GMACs'),
    ((*FIT, '--budget', 'cheap'), 'cheap'),
    ((*FIT, '--best', '--budget', '20ms'), '--best'),
    ((*FIT, '--labels', 'table.csv'), '9.png'),
    ((*FIT, '--out', 'taken'), '--overwrite'),
    ((*FIT, '--groups', '('), 'groups'),
    ((*FIT, '--groups', 'oak'), 'groups'),
    (('predict', 'model', 'photographs'), 'mmclca fit'),
    (('export', 'model'), 'mmclca fit'),
    (('report', 'model'), 'mmclca fit'),
    (('page', 'model'), 'mmclca fit'),
    (('add-class', 'model', 'one'), 'mmclca fit'),
    (('fitt',), 'fitt'),
    *(
        (('predict', 'model', 'a.png', '--device', name), name)
        for name in ('gpu', 'meta', 'mps', 'vulkan', 'nowhere', 'hpu', 'cpu:x')
    ),
    (('page', 'model', '--port', '65536'), '65535'),
    (('page', 'model', '--port', '-1'), '-1'),
    (('page', 'model', '--host', '999.1.1.1'), '999.1.1.1'),
    (('page', 'model', '--host', '192.0.2.1'), '192.0.2.1'),
    (('predict', 'photographs', 'a.pth'), 'predict a.pth photographs'),
    (('add-class', 'one', 'a.pth'), 'add-class a.pth one'),
    (('export', 'a.pth', '--opset', '99'), '--opset'),
]


@pytest.mark.parametrize('words, term', ERRORS)
def test_command_exits_with_one_line_if_argument_is_wrong(
    words, term, end, tmp_path, capfd, monkeypatch
):
    def missing(source):
        raise CheckpointError(source)

    if '--weights' not in words:
        monkeypatch.setattr(weights, 'open_checkpoint', missing)
    before = {*tmp_path.rglob('*')}
    assert end(*words) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert re.match(r'mmclca\b.*: error: ', line) and term in line, line
    assert {*tmp_path.rglob('*')} == before


def test_every_command_is_in_a_group():
    assert sorted(re.findall(r'(?m)^  (\S+)', verbs.__doc__)) == VERBS


def test_help_lists_all_commands(end, capsys):
    assert end('--help') == 0
    told = capsys.readouterr().out
    assert {*VERBS} <= {*told.split()}
    assert end() == 2


def test_fit_prints_advice_if_interrupted(end, capfd, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr('mmclca.fitting.fit', pressed)
    assert end(*FIT) == 130
    assert 'same command to resume' in capfd.readouterr().err
