# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the pages of docs/results from their templates and the tables.

Missing results that need no training are measured first.
"""

from functools import cache
from pathlib import Path

import few_photographs
import jinja2
import pandas as pd
import reducers
import reported_accuracy
import tables
import trained
import unknown_classes

from mmclca import cli
from mmclca.utils.files import replace_text

RESULTS = Path('docs/results')


def of_few_photographs():
    """Return what the template of a few photographs asks for."""
    more = (
        reported_accuracy.values()
        | unknown_classes.values()
        | trained.values()
    )
    return few_photographs.values() | more


def runs(sweep):
    """Return the results of a sweep."""
    return tables.read_sweep(RESULTS / f'{sweep}.csv')


@cache
def table_of_runs(sweep):
    """Return one row per run, sorted by seed."""
    table = pd.json_normalize(runs(sweep))
    return table.sort_values('cell.seed').fillna({'cell.variant': ''})


def of_cells(sweep, cell):
    """Return the runs of a sweep whose cells have some values."""
    keys = {f'cell.{key}': value for key, value in cell.items()}
    return tables.select(table_of_runs(sweep), keys)


def mean(sweep, column, form='{:.1f}', scale=1, **cell):
    """Return the mean of a column over some runs."""
    return form.format(scale * of_cells(sweep, cell)[column].mean())


def spread(sweep, **cell):
    """Return mean and standard deviation of the accuracy, '' without runs."""
    found = of_cells(sweep, cell).accuracy
    if found.empty:
        return ''
    ends = f' ± {found.std():.1f}' if len(found) > 1 else ''
    return f'{found.mean():.1f}{ends}'


def by_seed(sweep, column='accuracy', **cell):
    """Return the values of a column, the first seed first."""
    found = of_cells(sweep, cell)[column]
    return ', '.join(found.dropna().map('{:.1f}'.format))


def before(sweep, **cell):
    """Return the accuracies of the better probe of the initial weights."""
    found = of_cells(sweep, cell).filter(like='start.').max(axis=1)
    return ', '.join(found.dropna().map('{:.1f}'.format))


def render(template, values):
    """Return the text of a page; the template may ask for these values
    only."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.from_string(template.read_text('utf-8')).render(values)


def main():
    parser = cli.Parser(description=__doc__)
    pages = sorted(file.name[:-6] for file in RESULTS.glob('*.md.j2'))
    which = 'names of pages (default: all)'
    parser.add('pages', which, nargs='*', choices=[*pages, []])
    parser.add('--out', 'folder to write to', Path('docs'), type=Path)
    args = parser.parse_args()
    with cli.usage_errors():
        for page in args.pages or pages:
            print(write(page, args.out))


def write(page, out):
    """Write a page."""
    own = dict(few_photographs=of_few_photographs, reducers=reducers.values)
    of_sweeps = dict(runs=runs, mean=mean, spread=spread)
    of_sweeps.update(by_seed=by_seed, before=before)
    values = own[page]() if page in own else of_sweeps
    file = out / 'results' / f'{page}.md'
    replace_text(file, render(RESULTS / f'{page}.md.j2', values))
    return file


if __name__ == '__main__':
    cli.run(main)
