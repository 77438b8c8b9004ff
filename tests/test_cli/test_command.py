# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command mmclca: its help, streams and arguments."""

import errno
import re
import sys
from io import BytesIO, TextIOWrapper

import pytest
from tiny_run import ROOT, exit_code

from mmclca import cli
from mmclca.cli.listing import SUBCOMMANDS, list_groups
from mmclca.cli.main import main
from mmclca.errors import Error, replace_settings


def test_help_lists_all_commands(monkeypatch, capsys):
    for words in (['--help'], []):
        monkeypatch.setattr(sys, 'argv', ['mmclca', *words])
        assert exit_code(main) == 0
        said = capsys.readouterr().out
        assert sorted(re.findall(r'(?m)^  ([a-z]\S+)', said)) == SUBCOMMANDS


@pytest.mark.parametrize(
    'word, command', [('predct', 'predict'), ('get_flops', 'get-flops')]
)
def test_nearest_command_is_suggested(monkeypatch, capsys, word, command):
    monkeypatch.setattr(sys, 'argv', ['mmclca', word])
    assert exit_code(main) == 2
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
        try:
            raise OSError(number, 'cannot write a.csv')
        except OSError as error:
            raise Error('tiny.py: cannot write a.csv') from error

    assert exit_code(main) == code
    assert capsys.readouterr().err.endswith('a.csv\n')


@pytest.mark.parametrize(
    'error',
    [
        TypeError('a bug'),
        ValueError('a bug'),
        RuntimeError('a bug'),
        ImportError('a bug', name='mmclca.parts'),
    ],
)
def test_bug_ends_with_its_traceback_and_asks_to_report_it(error, capsys):
    def main():
        raise error

    assert exit_code(main) == 1
    first, *_, before, last = capsys.readouterr().err.splitlines()
    assert first.startswith('Traceback') and before.endswith('a bug')
    assert 'report' in last and 'troubleshooting.md' in last


@pytest.mark.parametrize(
    'error',
    [
        Error('wrong'),
        FileNotFoundError('wrong'),
        ImportError('wrong'),
        ModuleNotFoundError('wrong', name='gradio'),
    ],
)
def test_wrong_input_ends_in_one_line(error, capsys):
    def main():
        raise error

    assert exit_code(main) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(r': error: .*', line)


def test_settings_are_printed_as_options_of_the_command():
    parser = cli.Parser()
    parser.add('--out FILE', 'output')
    parser.add('--table TABLE', 'table', dest='labels')
    parser.flag('--overwrite', 'replace')
    message = 'change `out`, `out=b`, `labels`, `overwrite=True` or `depth`'
    said = replace_settings(message, parser.describe_setting)
    assert said == ('change --out, --out b, --table, --overwrite or `depth`')


def test_overwriting_is_printed_as_option_if_only_fit_has_it():
    message = 'fit again with `overwrite=True`'
    said = replace_settings(message, cli.Parser().describe_setting)
    assert said == 'fit again with --overwrite'


def test_config_settings_are_printed_as_option_if_the_command_has_it():
    message = 'set `model.head.num_classes=4`, not `model.head`'
    parser = cli.Parser()
    assert replace_settings(message, parser.describe_setting) == message
    parser.share('--cfg-options')
    said = replace_settings(message, parser.describe_setting)
    assert said == (
        'set --cfg-options model.head.num_classes=4, not `model.head`'
    )


def test_every_listing_names_a_page_of_the_docs():
    groups = list_groups()
    names = [name for listings in groups.values() for name in listings]
    assert sorted(names) == SUBCOMMANDS
    for listings in groups.values():
        for listing in listings.values():
            page = listing.page
            assert not page or (ROOT / f'docs/{page}.md').is_file()
