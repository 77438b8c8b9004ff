# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The command ``mmclca``: a verb for each command."""

import argparse
import sys
from pathlib import Path

from mmclca.version import __version__

from .ending import run_command

FOLDERS = {
    'fit': 'fit a model to photographs, a folder a class',
    'predict': 'name what is on new photographs',
    'page': 'a page in the browser: drop a photograph, see its name',
    'export': 'write the model as one ONNX file',
    'report': 'write report.html again',
    'add-class': 'teach the model one more class, in seconds',
}
COMMANDS = Path(__file__).parent.glob('commands/[a-z]*.py')
VERBS = sorted(path.stem.replace('_', '-') for path in COMMANDS)


def main() -> None:
    """Run the verb that the command line names."""
    verb = _verb_of(sys.argv[1:2])
    sys.argv = [f'mmclca {verb}', *sys.argv[2:]]
    run_command(verb.replace('-', '_'))


def _verb_of(words: list[str]) -> str:
    lines = [f'  {verb:10} {does}' for verb, does in FOLDERS.items()]
    others = ' '.join(verb for verb in VERBS if verb not in FOLDERS)
    parser = argparse.ArgumentParser(
        prog='mmclca',
        usage='mmclca VERB ... (mmclca VERB --help tells more)',
        description='\n'.join(['verbs:', *lines, f'  and {others}']),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('verb', choices=VERBS, help=argparse.SUPPRESS)
    parser.add_argument('--version', action='version', version=__version__)
    return parser.parse_args(words).verb
