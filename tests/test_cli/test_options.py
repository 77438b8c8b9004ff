# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arguments of every command, which users have in their scripts.

A golden file stores them. New commands, options and choices need no change in
it; another default, or one that is gone, does.
"""

import re
import runpy
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from pathlib import Path

import pytest
from golden import golden
from tiny_run import ROOT

from mmclca.cli.listing import SUBCOMMANDS

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_command_reference.py'))
TOOLS = [
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    if not {'dev', 'research'} & {*path.parts}
]
STUBS = {Path(tool).stem.replace('_', '-') for tool in TOOLS}
WITHOUT_STUB = [f'mmclca {x}' for x in SUBCOMMANDS if x not in STUBS]
COMMANDS = [*sorted(TOOLS), 'mmclca', *WITHOUT_STUB]


def split_words(action):
    """Return an argument with ``!`` if required, its default and choices."""
    word = '/'.join(action.option_strings) or action.dest
    word += '!' * action.required
    if action.default is not None and action.default not in ('', SUPPRESS):
        word += f'={action.default}'
    if action.choices:
        word += f'({"|".join(map(str, action.choices))})'
    return word


def lines_of(command, parser):
    """Yield a line of arguments for a command and each subcommand."""
    yield f'{command}: {" ".join(map(split_words, parser._actions))}\n'
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for name, other in action.choices.items():
                yield from lines_of(f'{command} {name}', other)


def read_arguments(line):
    """Return command and choices by argument in a line of the golden file."""
    command, _, arguments = line.partition(': ')
    matches = re.finditer(r'([^ (]+)(?:\(([^ ]*)\))?', arguments)
    return command, {x[1]: {*(x[2] or '').split('|')} for x in matches}


def list_breaks(stored_lines, present_lines):
    """List the changes after which a command line may fail or differ."""
    present = dict(map(read_arguments, present_lines))
    breaks = []
    for command, stored in map(read_arguments, stored_lines):
        if command not in present:
            breaks.append(f'{command}: gone')
            continue
        arguments = present[command]
        for argument, choices in stored.items():
            if not choices <= arguments.get(argument, set()):
                breaks.append(f'{command}: {argument} changed or gone')
        for argument in arguments.keys() - stored:
            if argument.endswith('!'):
                breaks.append(f'{command}: {argument} is required')
    return breaks


def test_commands_keep_their_arguments(monkeypatch):
    seen = []
    monkeypatch.setattr(
        ArgumentParser, 'print_help', lambda self, *_: seen.append(self)
    )
    for command in COMMANDS:
        TOOL['get_help'](command)
    pairs = zip(COMMANDS, seen, strict=True)
    present = ''.join(line for pair in pairs for line in lines_of(*pair))
    stored = golden('options.txt', present)
    assert not list_breaks(stored.splitlines(), present.splitlines())


@pytest.mark.parametrize(
    'present, number',
    [
        (['fit: photos! --folds=5 --runtime(onnx|pytorch)', 'new: x!'], 0),
        (['fit: photos! --seed=0 --runtime(pytorch|tpu|onnx) --folds=5'], 0),
        (['fit: photos! --folds=3 --runtime(onnx|pytorch)'], 1),
        (['fit: photos! --folds=5 --runtime(onnx)'], 1),
        (['fit: photos! --folds=5 --runtime(onnx|pytorch) out!'], 1),
        (['fit: photos --folds=5'], 2),
        (['new: photos!'], 1),
    ],
)
def test_only_changes_that_break_scripts_are_listed(present, number):
    stored = ['fit: photos! --folds=5 --runtime(onnx|pytorch)']
    assert len(list_breaks(stored, present)) == number
