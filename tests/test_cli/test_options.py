# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Option names of every command, which users have in their scripts."""

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


def test_commands_keep_their_options():
    rows = [row for command in COMMANDS for row in TOOL['options_of'](command)]
    text = ''.join(f'{name}: {" ".join(found)}\n' for name, found in rows)
    assert text == golden('options.txt', text)
