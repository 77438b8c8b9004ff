# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a page of docs/results from its template and the stored results.

What is missing among the results that need no training is measured first.
"""

import json
from pathlib import Path

import few_photographs
import jinja2
import pandas as pd
import reducers
import strangers
import told
import trained

from mmclca import cli
from mmclca.sweep.compose import Cell
from mmclca.sweep.report import markdown
from mmclca.sweep.results import read_results
from mmclca.utils.files import replace_text

RESULTS = Path('docs/results')


def of_few_photographs(out):
    """Return what the template of a few photographs asks for."""
    more = told.values() | strangers.values() | trained.values()
    return few_photographs.values(out) | more


def runs(sweep):
    """Return the results of a sweep."""
    return read_results(RESULTS / sweep)


def table_of_runs(sweep, rows):
    """Return a row a model: accuracy by seed, also of probes of the initial
    weights where these were measured, and costs.

    Args:
        sweep (str): Folder of the results.
        rows (dict[str, dict]): What the cells of a model have, by its name.
    """
    results = runs(sweep)
    starts = {
        file.stem: json.loads(file.read_text())
        for file in (RESULTS / sweep).glob('starts/*.json')
    }
    table = []
    for name, own in rows.items():
        row = dict(model=name)
        chosen = [r for r in results if own.items() <= r['cell'].items()]
        for run in sorted(chosen, key=lambda run: run['cell']['seed']):
            cell = Cell(**run['cell'])
            row[f'top-1, seed {cell.seed}'] = f'{run["accuracy"]:.1f}'
            if cell.name in starts:
                start = max(starts[cell.name].values())
                row[f'before training, seed {cell.seed}'] = f'{start:.1f}'
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
    parser.add('page', 'page to write', choices=pages)
    parser.add('--out', 'output folder', Path('docs'), type=Path)
    args = parser.parse_args()
    own = dict(few_photographs=of_few_photographs, reducers=reducers.values)
    with cli.plain_errors():
        of_sweeps = dict(runs=runs, table=table_of_runs)
        values = own[args.page](args.out) if args.page in own else of_sweeps
        file = args.out / 'results' / f'{args.page}.md'
        replace_text(file, render(RESULTS / f'{args.page}.md.j2', values))
    print(f'Saved      {file}')


if __name__ == '__main__':
    cli.run(main)
