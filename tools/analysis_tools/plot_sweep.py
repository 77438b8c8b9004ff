# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and Table I of the CLCA paper from results of sweeps."""

from pathlib import Path

from mmclca import cli

# what can be chosen: option, part of a cell
CHOICES = {
    '--dataset': 'dataset',
    '--backbone': 'backbone',
    '--method': 'method',
    '--keep-rate': 'keep_rate',
    '--variant': 'variant',
}


def parse_args():
    parser = cli.Parser(
        description='Draw accuracy against GMACs (Fig. 1 of the paper), '
        'accuracies by method (Fig. 3) and the largest gradients of each '
        'epoch (Fig. 4), by part of the model where runs were told to, as PDF '
        'and PNG, and write Table I as Markdown and LaTeX; prints the files. '
        'What the results do not suffice for is left out with a warning'
    )
    parser.add_argument(
        'folders',
        nargs='+',
        type=Path,
        metavar='FOLDER',
        help='folder of the results of a sweep (*.json)',
    )
    parser.add_argument(
        '--out', type=Path, required=True, help='folder to write to'
    )
    for option, part in CHOICES.items():
        parser.add_argument(
            option,
            nargs='+',
            type=float if part == 'keep_rate' else str,
            dest=part,
            help='take these results only'
            + (" ('' for those of no variant)" if part == 'variant' else ''),
        )
    return parser.parse_args()


def main():
    args = parse_args()
    with cli.plain_errors():  # packages may be missing
        from mmclca.cli.commands import plot_sweep

    plot_sweep.main(args)


if __name__ == '__main__':
    cli.run(main)
