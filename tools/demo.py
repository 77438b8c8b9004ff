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
    parser.add(
        '--work-dir',
        'folder for results, which a later demo empties',
        'work_dirs/demo',
    )
    parser.add('--seed', 'of leaves, weights and training', 1)
    parser.add(
        '--cfg-options',
        'passed on to training and testing',
        [],
        nargs='+',
        metavar='KEY=VALUE',
    )
    return parser.parse_args()


main = cli.command('demo', parse_args, root=ROOT)

if __name__ == '__main__':
    cli.run(main)
