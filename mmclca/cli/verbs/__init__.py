# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The verbs of the command ``mmclca``: a module each, as thin as a tool.

Importing them takes no longer than importing ``mmclca.cli``.
"""

import argparse
import sys
from importlib import import_module

from mmclca.version import __version__

from ..ending import run

VERBS = {
    'fit': 'fit a model to photographs, a folder a class',
    'predict': 'name what is on new photographs',
    'page': 'a page in the browser: drop a photograph, see its name',
    'export': 'write the model as one ONNX file',
    'report': 'write report.html again',
    'add-class': 'teach the model one more class, in seconds',
}


def main() -> None:
    """Run the verb that the command line names."""
    verb = _verb_of(sys.argv[1:2])
    sys.argv = [f'mmclca {verb}', *sys.argv[2:]]
    module = import_module(f'{__name__}.{verb.replace("-", "_")}')
    run(module.main, 'the same command goes on' if verb == 'fit' else '')


def _verb_of(words: list[str]) -> str:
    lines = [f'  {verb:10} {does}' for verb, does in VERBS.items()]
    parser = argparse.ArgumentParser(
        prog='mmclca',
        usage='mmclca VERB ... (mmclca VERB --help tells more)',
        description='\n'.join(['verbs:', *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument('verb', choices=VERBS, help=argparse.SUPPRESS)
    parser.add_argument('--version', action='version', version=__version__)
    return parser.parse_args(words).verb
