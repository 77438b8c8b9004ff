# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and Table I of the CLCA paper from results of sweeps."""

from pathlib import Path

from mmclca import cli


def parse_args():
    parser = cli.Parser(
        description='Draw accuracy against GMACs (Fig. 1 of the paper), '
        'accuracies by method (Fig. 3) and the largest gradients of each '
        'epoch (Fig. 4), by part of the model where runs were told to, as PDF '
        'and PNG, and write Table I as Markdown and LaTeX; prints the files. '
        'What the results do not suffice for is left out with a warning'
    )
    parser.add(
        'folders',
        'folder of the results of a sweep (*.json)',
        nargs='+',
        type=Path,
        metavar='FOLDER',
    )
    parser.add('--out', 'folder to write to', type=Path, required=True)
    only = 'take these results only'
    for option in ('--dataset', '--backbone', '--method'):
        parser.add(option, only, nargs='+')
    parser.add('--keep-rate', only, nargs='+', type=float)
    parser.add('--variant', f"{only} ('' for those of no variant)", nargs='+')
    return parser.parse_args()


main = cli.command('plot_sweep', parse_args)

if __name__ == '__main__':
    cli.run(main)
