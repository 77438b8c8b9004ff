# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A config with all that it inherits: ``python tools/misc/print_config.py
CONFIG``."""

import argparse
import sys
from contextlib import redirect_stdout

from rich.console import Console

from mmclca.utils.command_line import (
    add_cfg_options,
    plain_errors,
    read_config,
)


def parse_args():
    parser = argparse.ArgumentParser(
        description='Print a config with all that it inherits. What is '
        'printed is a config itself: > whole.py'
    )
    parser.add_argument('config', help='path or name of a config')
    add_cfg_options(parser)
    return parser.parse_args()


def main():
    args = parse_args()
    with plain_errors(args.config), redirect_stdout(sys.stderr):
        text = read_config(args.config, args.cfg_options).pretty_text
    # a wrapped line would be no Python
    Console(soft_wrap=True).print(text, markup=False)


if __name__ == '__main__':
    main()
