# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the command tables of docs/tools.md.

``python tools/dev/write_command_reference.py`` runs every command with
``--help`` and replaces the text between the marks in the page.
"""

import os
import re
import runpy
import sys
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from marked_text import write_between

from mmclca import cli
from mmclca.cli import main as program
from mmclca.cli.listing import list_groups

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / 'docs/tools.md'
BEGIN = '<!-- tables: write_command_reference.py -->\n'
END = '<!-- end of tables -->'
TITLES = ('command', 'purpose')
# programs besides the commands, with their pages by group
OTHERS = {
    'fit and use': {
        'demo/app.py': 'page',
        'tools/deployment/infer_onnx.py': 'deployment',
    },
    'analyze': {
        'tools/analysis_tools/analyze_logs.py': '',
        'tools/visualization/vis_scheduler.py': '',
    },
}
# help texts without the purpose in the first sentence
PURPOSES = {
    'analyze_logs': 'Plot losses and metrics, or print the training speed',
    'draw_reduction': 'Draw the patches that remain after each stage',
    'vis_cam': 'Draw class activation maps, such as Grad-CAM',
    'vis_pooling': 'Draw the weights of attention pooling',
    'vis_reconstruction': 'Draw masked images and their reconstructions',
    'vis_rollout': 'Draw the attention rollout over the patches',
    'vis_scheduler': 'Plot the learning-rate schedule',
}


def get_help(command):
    """Run a command with ``--help`` and return its output."""
    command_line = [*command.split(), '--help']
    file = ROOT / command_line[0]
    command_line[0] = file.name
    wide, out = patch.dict(os.environ, COLUMNS='10000'), StringIO()
    argv = patch.object(sys, 'argv', command_line)
    with wide, argv, redirect_stdout(out), suppress(SystemExit):
        if file.suffix:
            runpy.run_path(str(file), run_name='__main__')
        else:
            program.main()
    return out.getvalue()


def purpose(name, help_page):
    """Return the first sentence in a help text."""
    description = help_page.split('\n\n')[1]
    return PURPOSES.get(name) or re.split('[.;:](?: |$)', description)[0]


def row(command, page):
    """Return the table cells: link and purpose."""
    name = Path(command).stem if command.endswith('.py') else command
    cell = f'[`{command}`]({page}.md)' if page else f'`{command}`'
    return [cell, purpose(name, get_help(command))]


def get_program(subcommand):
    """Return the file in tools that runs a subcommand, if there is one."""
    file = f'{subcommand.replace("-", "_")}.py'
    for path in (ROOT / 'tools').rglob(file):
        return path.relative_to(ROOT).as_posix()
    return f'mmclca {subcommand}'


def tables():
    """Yield all table lines."""
    from mmclca.utils.markdown import format_head, format_row

    for group, listings in list_groups().items():
        yield from ['', f'## {group.capitalize()}', '']
        yield from format_head(TITLES)
        for subcommand, listing in listings.items():
            yield format_row(row(get_program(subcommand), listing.page))
        for file, page in OTHERS.get(group, {}).items():
            yield format_row(row(file, page))


def write():
    """Replace the text between the marks in the page."""
    lines = '\n'.join(tables())
    write_between(PAGE, BEGIN, END, f'{lines}\n\n')


def main():
    cli.Parser(description=__doc__.partition('\n')[0]).parse_args()
    write()
    print(PAGE)


if __name__ == '__main__':
    cli.run(main)
