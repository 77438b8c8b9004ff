# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/analysis_tools/plot_sweep.py`` does."""

import sys
import warnings

from mmclca.sweep.figures import write_figures
from mmclca.sweep.results import read_results
from mmclca.sweep.table_1 import write_table_1

from .. import plain_errors


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
    missing = []
    for part, values in chosen.items():
        there = sorted({result['cell'][part] for result in results})
        missing += [
            f'{part}: no result of {value!r}; there are '
            + ', '.join(map(repr, there))
            for value in values
            if value not in there
        ]
    if missing:
        raise ValueError('; '.join(missing))
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


def main(args):
    with warnings.catch_warnings(), plain_errors():
        warnings.showwarning = show
        paths = plot(**vars(args))
    print(*paths, sep='\n')
