# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/misc/print_config.py`` does."""

import sys
from contextlib import redirect_stdout

from rich.console import Console

from mmclca.configs import read_config

from .. import plain_errors


def main(args):
    with plain_errors(args.config), redirect_stdout(sys.stderr):
        text = read_config(args.config, args.cfg_options).pretty_text
    # a wrapped line would be no Python
    Console(soft_wrap=True).print(text, markup=False)
