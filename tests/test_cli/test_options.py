# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Option names of every command, which users have in their scripts."""

import re
import runpy

from golden import golden
from tiny_run import ROOT

from mmclca.cli.verbs import FOLDERS

TOOL = runpy.run_path(str(ROOT / 'tools/dev/write_command_reference.py'))
TOOLS = [
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob('tools/**/*.py'), ROOT / 'demo/app.py']
    if not {'dev', 'research'} & {*path.parts}
]
COMMANDS = [*sorted(TOOLS), 'mmclca', *(f'mmclca {x}' for x in FOLDERS)]
SUBCOMMANDS = re.compile(r'\{([\w,]+)\} \.\.\.')


def options_of(command):
    """Yield the option names of a command and of its subcommands."""
    text = TOOL['help_of'](command)
    yield ' '.join([f'{command}:', *TOOL['options'](text)])
    if found := SUBCOMMANDS.search(text):
        for name in found[1].split(','):
            own = TOOL['options'](TOOL['help_of'](command, name))
            yield ' '.join([f'{command} {name}:', *own])


def test_commands_keep_their_options():
    lines = [line for command in COMMANDS for line in options_of(command)]
    text = '\n'.join(lines) + '\n'
    assert text == golden('options.txt', text)
