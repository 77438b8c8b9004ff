# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A config with all that it inherits: ``python tools/misc/print_config.py
CONFIG``."""

import sys
from contextlib import redirect_stdout

from mmclca.utils.lazy import lazy

from .. import Parser, plain_errors
from ..arguments import add_cfg_options

configs = lazy('mmclca.configs')
console = lazy('rich.console')


def parse_args():
    parser = Parser(
        description='Print a config with all that it inherits. What is '
        'printed is a config itself: > whole.py'
    )
    parser.add('config', 'path or name of a config')
    add_cfg_options(parser)
    return parser.parse_args()


def main(args):
    with plain_errors(args.config), redirect_stdout(sys.stderr):
        text = configs.read_config(args.config, args.cfg_options).pretty_text
    # a wrapped line would be no Python
    console.Console(soft_wrap=True).print(text, markup=False)
