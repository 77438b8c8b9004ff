# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write the pages of docs/results from their templates and the tables.

Missing results that need no training are measured first.
"""

from pathlib import Path

import few_photographs
import jinja2
import pandas as pd
import reducers
import strangers
import tables
import told
import trained

from mmclca import cli
from mmclca.sweep.report import markdown
from mmclca.utils.files import replace_text

RESULTS = Path('docs/results')


def of_few_photographs(out):
    """Return what the template of a few photographs asks for."""
    more = told.values() | strangers.values() | trained.values()
    return few_photographs.values(out) | more


def runs(sweep):
    """Return the results of a sweep."""
    return tables.read_sweep(RESULTS / f'{sweep}.csv')


def table_of_runs(sweep, rows):
    """Return one row per model: accuracy by seed, the accuracy of a probe of
    the initial weights where it was measured, and costs.

    Args:
        sweep (str): The study.
        rows (dict[str, dict]): Values of the cells of a model, by its name.
    """
    results = runs(sweep)
    table = []
    for name, own in rows.items():
        row = dict(model=name)
        chosen = [r for r in results if own.items() <= r['cell'].items()]
        for run in sorted(chosen, key=lambda run: run['cell']['seed']):
            seed = run['cell']['seed']
            row[f'top-1, seed {seed}'] = f'{run["accuracy"]:.1f}'
            if 'start' in run:
                start = max(run['start'].values())
                row[f'before training, seed {seed}'] = f'{start:.1f}'
        mean = pd.json_normalize(chosen).mean(numeric_only=True)
        row['mean'] = f'{mean.accuracy:.1f}'
        row['parameters (M)'] = f'{mean.params / 1e6:.2f}'
        row['GMACs'] = f'{mean.gmacs:.3f}'
        row['memory (MiB)'] = f'{mean.peak_memory_mb:.0f}'
        row['CPU min'] = f'{mean.cpu_seconds / 60:.1f}'
        row['images/s, training'] = f'{mean["throughput.train"]:.0f}'
        row['images/s, test'] = f'{mean["throughput.test"]:.0f}'
        table.append(row)
    return markdown(pd.DataFrame(table).fillna(''), ('model',))


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
    with cli.plain_errors():
        for page in args.pages or pages:
            print(write(page, args.out))


def write(page, out):
    """Write a page, and the pictures that are made with it."""
    own = dict(few_photographs=of_few_photographs, reducers=reducers.values)
    of_sweeps = dict(runs=runs, table=table_of_runs)
    values = own[page](out) if page in own else of_sweeps
    file = out / 'results' / f'{page}.md'
    replace_text(file, render(RESULTS / f'{page}.md.j2', values))
    return file


if __name__ == '__main__':
    cli.run(main)
