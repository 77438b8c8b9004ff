# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Figures and Table I of the CLCA paper from results of sweeps."""

import argparse
import sys
import warnings
from pathlib import Path

from mmclca.sweep.figures import write_figures
from mmclca.sweep.result import read_results
from mmclca.sweep.table_1 import write_table_1

# what can be chosen: option, part of a cell
CHOICES = {
    '--dataset': 'dataset',
    '--backbone': 'backbone',
    '--method': 'method',
    '--keep-rate': 'keep_rate',
    '--variant': 'variant',
}


def parse_args():
    parser = argparse.ArgumentParser(
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


def choose(results, **choices):
    """Results whose cells have one of the chosen values.

    Args:
        results (list[dict]): All results.
        **choices: Parts of a cell, a list of values or None each.

    Raises:
        ValueError: If no result has a value; names all such and what there
            is.
    """
    chosen = {part: values for part, values in choices.items() if values}
    there = {
        part: sorted({result['cell'][part] for result in results})
        for part in chosen
    }
    missing = [
        f'{part}: no result of {value!r}; there are '
        + ', '.join(map(repr, there[part]))
        for part, values in chosen.items()
        for value in values
        if value not in there[part]
    ]
    if missing:
        raise ValueError('\n'.join(missing))
    return [
        result
        for result in results
        if all(result['cell'][part] in chosen[part] for part in chosen)
    ]


def plot(folders, out, **choices):
    """Write all tables and figures; returns their paths."""
    results = [r for folder in folders for r in read_results(folder)]
    results = choose(results, **choices) if results else results
    return [*write_table_1(results, out), *write_figures(results, out)]


def show(message, *_):
    """A warning without the line of code that it comes from."""
    print(message, file=sys.stderr)


def main():
    args = vars(parse_args())
    with warnings.catch_warnings():
        warnings.showwarning = show
        try:
            paths = plot(**args)
        except (OSError, ValueError) as error:
            sys.exit(f'{error}')
    print(*paths, sep='\n')


if __name__ == '__main__':
    main()
