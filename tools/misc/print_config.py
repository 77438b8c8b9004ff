# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A config with all that it inherits: ``python tools/misc/print_config.py
CONFIG``."""

from mmclca import cli
from mmclca.cli.arguments import add_cfg_options


def parse_args():
    parser = cli.Parser(
        description='Print a config with all that it inherits. What is '
        'printed is a config itself: > whole.py'
    )
    parser.add('config', 'path or name of a config')
    add_cfg_options(parser)
    return parser.parse_args()


main = cli.command('print_config', parse_args)

if __name__ == '__main__':
    cli.run(main)
