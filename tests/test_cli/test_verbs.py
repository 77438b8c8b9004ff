# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command mmclca: what its verbs hand on, and what they refuse."""

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
    """Runs a command line in a folder with photographs and weights."""
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
# words, what came, how to fix it
MISTAKES = [
    (('fit', 'gone'), 'folder .*gone', 'give the folder'),
    (('fit', 'one'), 'two classes', 'folder per class'),
    (('fit', 'tiny.safetensors'), 'is a file', 'give the folder'),
    (('fit', 'photographs'), 'no weights', '--weights'),
    (('fit', 'photographs', '--weights', 'x.pth'), 'x.pth', 'checkpoint'),
    ((*FIT, '--budget', '0.001GMACs'), '0.001GMACs', r'cheapest needs 0\.\d+'),
    ((*FIT, '--budget', 'cheap'), 'cheap', '0.5GMACs or 20ms'),
    ((*FIT, '--best', '--budget', '20ms'), '--best', 'not allowed'),
    ((*FIT, '--labels', 'table.csv'), '9.png', 'missing|table'),
    ((*FIT, '--out', 'taken'), 'not empty', '--overwrite'),
    ((*FIT, '--groups', '('), 'groups', 'regular expression'),
    ((*FIT, '--groups', 'oak'), 'groups', 'expression'),
    (('predict', 'model', 'photographs'), 'model', 'mmclca fit'),
    (('export', 'model'), 'model', 'mmclca fit'),
    (('report', 'model'), 'model', 'mmclca fit'),
    (('page', 'model'), 'model', 'mmclca fit'),
    (('add-class', 'model', 'one'), 'model', 'mmclca fit'),
    (('fitt',), 'fitt', 'choose from'),
    *(
        (('predict', 'model', 'a.png', '--device', name), name, 'cpu, cuda')
        for name in ('gpu', 'meta', 'mps', 'vulkan', 'nowhere', 'hpu', 'cpu:x')
    ),
    (('page', 'model', '--port', '65536'), '65536', 'at most 65535'),
    (('page', 'model', '--port', '-1'), '-1', 'at least 0'),
    (('page', 'model', '--host', '999.1.1.1'), '999.1.1.1', '--host'),
    (('page', 'model', '--host', '192.0.2.1'), '192.0.2.1', '--host'),
    (('predict', 'photographs', 'a.pth'), 'first', 'predict a.pth photo'),
    (('add-class', 'one', 'a.pth'), 'first', 'add-class a.pth one'),
    (('export', 'a.pth', '--opset', '99'), '99', 'at most 22'),
]


@pytest.mark.parametrize('words, came, fix', MISTAKES)
def test_a_mistake_is_one_line_and_nothing_is_written(
    words, came, fix, end, tmp_path, capfd, monkeypatch
):
    def missing(source):
        raise CheckpointError(source)

    if '--weights' not in words:
        monkeypatch.setattr(weights, 'open_checkpoint', missing)
    before = {*tmp_path.rglob('*')}
    assert end(*words) == 2
    *_, line = capfd.readouterr().err.splitlines()
    assert re.match(r'mmclca\b.*: error: ', line), line
    assert re.search(came, line) and re.search(fix, line), line
    assert {*tmp_path.rglob('*')} == before


def test_every_command_is_in_a_group():
    assert sorted(re.findall(r'(?m)^  (\S+)', verbs.__doc__)) == VERBS


def test_verbs_by_their_names(end, capsys):
    assert end('--help') == 0
    told = capsys.readouterr().out
    assert {*VERBS} <= {*told.split()}
    assert end() == 2


def test_interrupted_it_says_how_to_go_on(end, capfd, monkeypatch):
    def pressed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr('mmclca.fitting.fit', pressed)
    assert end(*FIT) == 130
    assert 'same command to resume' in capfd.readouterr().err
