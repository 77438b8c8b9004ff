# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print a config with all inherited settings. The output is a valid config.

``python tools/misc/print_config.py CONFIG``
"""

import sys
from contextlib import redirect_stdout

from ..listing import Listing

LISTING = Listing(
    'models', 'print a config with all inherited settings', 'configs'
)


def add_arguments(parser):
    parser.share('config')
    parser.share('--cfg-options')


def main(args):
    from rich.console import Console

    from mmclca.configs import read_config

    with redirect_stdout(sys.stderr):
        config = read_config(args.config, args.cfg_options).pretty_text
    # wrapped lines would not be valid Python
    Console(soft_wrap=True).print(config, markup=False)
