# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From nothing to a trained, tested and drawn CLCA ViT, on a CPU.

Draws leaves of eight cultivars, trains a small ViT that drops half of its
tokens three times, tests the best checkpoint, and ends with a table. Every
command is printed, and can be run by hand from the folder of the project.
"""

from pathlib import Path

from mmclca import cli

ROOT = Path(__file__).resolve().parents[1]


def parse_args():
    parser = cli.Parser(description=__doc__)
    parser.add_argument(
        '--work-dir',
        default='work_dirs/demo',
        help='folder for results, which a later demo empties (default: '
        '%(default)s)',
    )
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        default=[],
        metavar='KEY=VALUE',
        help='passed on to training and testing',
    )
    return parser.parse_args()


def main():
    args = parse_args()
    from mmclca.cli.commands import demo

    demo.main(args, ROOT)


if __name__ == '__main__':
    cli.run(main)
