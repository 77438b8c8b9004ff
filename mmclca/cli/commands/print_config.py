# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Print a config with all inherited settings. The output is a valid config.

``python tools/misc/print_config.py CONFIG``
"""

import sys
from contextlib import redirect_stdout

from .. import Parser, usage_errors
from ..packages import configs, rich


def parse_args():
    parser = Parser(__doc__)
    parser.share('config')
    parser.share('--cfg-options')
    return parser.parse_args()


def main(args):
    with usage_errors(args.config), redirect_stdout(sys.stderr):
        text = configs.read_config(args.config, args.cfg_options).pretty_text
    # wrapped lines would not be valid Python
    rich.console.Console(soft_wrap=True).print(text, markup=False)
