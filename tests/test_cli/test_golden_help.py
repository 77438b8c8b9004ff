# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What every command says to ``--help``, an option a line."""

import re
import runpy
import sys

import golden
import pytest
from tiny_run import ROOT

from mmclca.cli.verbs import FOLDERS, main

TOOLS = {
    path.stem: path
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    if not {'dev', 'research'} & {*path.parts}
}
COMMANDS = [*TOOLS, 'mmclca', *(f'mmclca {verb}' for verb in FOLDERS)]
# tasks of a command, in its usage
TASKS = re.compile(r'\{([\w,]+)\} \.\.\.')
# with a value for each name, as Python wrote them up to 3.12
TWICE = re.compile(r'(-\w) (\S.*?), (--[\w-]+) \2(?=  |\n)')


@pytest.fixture
def help_of(monkeypatch, capsys):
    def help_of(command, *task):
        tool = TOOLS.get(command)
        program = tool.name if tool else 'mmclca'
        words = command.split()[1:] + [*task, '--help']
        monkeypatch.setattr(sys, 'argv', [program, *words])
        with pytest.raises(SystemExit, match='^0$'):
            runpy.run_path(str(tool), run_name='__main__') if tool else main()
        return capsys.readouterr().out

    return help_of


def a_line_each(text):
    """Options in a line each, in the form of every Python."""
    text = re.sub(r'\n {20,}', '  ', text)
    return TWICE.sub(r'\1, \3 \2', re.sub(r'(?<=\S) {2,}', '  ', text))


@pytest.mark.parametrize('command', COMMANDS)
def test_help(command, help_of, monkeypatch):
    monkeypatch.setenv('COLUMNS', '10000')
    texts = [help_of(command)]
    if tasks := TASKS.search(texts[0]):
        texts += [help_of(command, task) for task in tasks[1].split(',')]
    said = '\n'.join(map(a_line_each, texts))
    name = command.replace(' ', '_')
    assert said == golden.golden(f'help/{name}.txt', said)


def test_every_file_is_of_a_command():
    commands = {command.replace(' ', '_') for command in COMMANDS}
    assert golden.names('help') == commands
