# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Arguments of every command, which users have in their scripts."""

import runpy
from argparse import SUPPRESS, ArgumentParser, _SubParsersAction
from pathlib import Path

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


def test_commands_keep_their_arguments(monkeypatch):
    seen = []
    monkeypatch.setattr(
        ArgumentParser, 'print_help', lambda self, *_: seen.append(self)
    )
    for command in COMMANDS:
        TOOL['get_help'](command)
    pairs = zip(COMMANDS, seen, strict=True)
    text = ''.join(line for pair in pairs for line in lines_of(*pair))
    assert text == golden('options.txt', text)
