# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command mmclca: its help, streams and arguments."""

import errno
import json
import re
import sys
from io import BytesIO, TextIOWrapper

import pytest
from tiny_run import exit_code

from mmclca import cli
from mmclca.cli import errors
from mmclca.cli import main as program


def test_help_lists_all_commands(monkeypatch, capsys):
    assert (
        sorted(re.findall(r'(?m)^  (\S+)', program.__doc__))
        == program.SUBCOMMANDS
    )
    for words in (['--help'], []):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
        assert exit_code(program.main) == 0
        assert {*program.SUBCOMMANDS} <= {*capsys.readouterr().out.split()}


@pytest.mark.parametrize(
    'word, command', [('predct', 'predict'), ('get_flops', 'get-flops')]
)
def test_nearest_command_is_suggested(monkeypatch, capsys, word, command):
    monkeypatch.setattr(sys, 'argv', ['mmclca', word])
    assert exit_code(program.main) == 2
    error = capsys.readouterr().err
    assert command in error and 'vis-tsne' not in error


@pytest.fixture
def run(monkeypatch):
    """Run a tool on a cp1252 stream; arguments and output."""

    def run(tool, *words):
        stream = TextIOWrapper(BytesIO(), encoding='cp1252')
        monkeypatch.setattr(sys, 'stdout', stream)
        monkeypatch.setattr(sys, 'argv', ['tool', *words])
        monkeypatch.setenv('HOME', '/home/ash')
        cli.run(tool)
        stream.flush()
        return sys.argv[1:], stream.buffer.getvalue()

    return run


def test_output_is_escaped_if_not_encodable(run):
    _, output = run(lambda: print('苹果 Łubin'))
    assert output == rb'\u82f9\u679c \u0141ubin' + b'\n'


def test_tilde_is_expanded_in_every_word(run):
    words = ['~/photos', '--out=~/model', 'data_root=~/a', 'a~/b', '--x=1=~']
    found, _ = run(lambda: None, *words)
    home = '/home/ash'
    assert found == [
        *(f'{home}/photos', f'--out={home}/model', f'data_root={home}/a'),
        *('a~/b', '--x=1=~'),
    ]


@pytest.mark.parametrize(
    'number, code', [(errno.ENOSPC, 1), (errno.EROFS, 1), (errno.ENOTDIR, 2)]
)
def test_exit_code_is_1_if_the_disk_refuses(number, code, capsys):
    def main():
        with cli.usage_errors('tiny.py'):
            raise OSError(number, 'cannot write a.csv')

    assert exit_code(main) == code
    assert capsys.readouterr().err.endswith('a.csv\n')


def test_code_of_the_user_is_told_from_libraries():
    with pytest.raises(ValueError) as raised:
        json.loads('{')
    error = raised.value
    assert errors._is_in_user_code(error)
    error.__traceback__ = error.__traceback__.tb_next  # without this test
    assert not errors._is_in_user_code(error)
