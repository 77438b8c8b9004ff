# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A page that names leaves: ``python demo/app.py [CKPT]``."""

from pathlib import Path

from mmclca import cli
from mmclca.cli.arguments import add_config_argument, add_model_arguments

ROOT = Path(__file__).resolve().parents[1]


def parse_args():
    parser = cli.Parser(
        description='Serve a page on this computer: drop a leaf, see its '
        'name, what is left of it step by step, and the work it takes'
    )
    parser.add(
        'checkpoint',
        'path or URL of the weights, which hold config and class names '
        '(default: those of "make demo")',
        nargs='?',
    )
    add_config_argument(parser)
    parser.add('--port', 'port (default: a free one from 7860 on)', type=int)
    parser.add(
        '--host',
        'address to listen at (default: %(default)s, reached from this '
        'computer alone). 0.0.0.0 shows the page to the whole network, '
        'without a password',
        '127.0.0.1',
    )
    parser.add(
        '--reject',
        'file of open_set.py: it says what is of no known class',
        type=Path,
        metavar='THRESHOLD.json',
    )
    add_model_arguments(parser)
    return parser.parse_args()


main = cli.command('app', parse_args, root=ROOT)

if __name__ == '__main__':
    cli.run(main)
