# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Write a page of docs/results from its template and the stored results.

What is missing among the results that need no training is measured first.
"""

import json
from functools import partial
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


def from_scratch(name):
    """Return what the template of runs from scratch asks for."""
    folder = RESULTS / f'{name}_from_scratch'
    results = read_results(folder)
    starts = {
        file.stem: json.loads(file.read_text())
        for file in folder.glob('starts/*.json')
    }
    return dict(results=results, table=partial(table_of_runs, results, starts))


def table_of_runs(results, starts, names):
    """Return a row a model: accuracy by seed, also of probes of the initial
    weights where these were measured, and costs.

    Args:
        results (list[dict]): Of the runs.
        starts (dict[str, dict[str, float]]): Of probes, by names of cells.
        names (dict[str, str]): Of models, by the ``variant`` of their cells.
    """
    rows = []
    for variant, name in names.items():
        row = dict(model=name)
        runs = [r for r in results if r['cell']['variant'] == variant]
        for run in sorted(runs, key=lambda run: run['cell']['seed']):
            cell = Cell(**run['cell'])
            row[f'top-1, seed {cell.seed}'] = f'{run["accuracy"]:.1f}'
            if cell.name in starts:
                start = max(starts[cell.name].values())
                row[f'before training, seed {cell.seed}'] = f'{start:.1f}'
        mean = pd.json_normalize(runs).mean(numeric_only=True)
        row['parameters (M)'] = f'{mean.params / 1e6:.2f}'
        row['GMACs'] = f'{mean.gmacs:.3f}'
        row['CPU min'] = f'{mean.cpu_seconds / 60:.1f}'
        row['images/s, training'] = f'{mean["throughput.train"]:.0f}'
        row['images/s, test'] = f'{mean["throughput.test"]:.0f}'
        rows.append(row)
    return markdown(pd.DataFrame(rows), ('model',))


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
    own = dict(few_photographs=of_few_photographs, reducers=reducers.values)
    pages = (*own, 'family', 'architectures')
    parser.add('page', 'which one', choices=pages)
    parser.add('--out', 'folder to write to', Path('docs'), type=Path)
    args = parser.parse_args()
    with cli.plain_errors():
        if args.page in own:
            values = own[args.page](args.out)
        else:
            values = from_scratch(args.page)
        file = args.out / 'results' / f'{args.page}.md'
        replace_text(file, render(RESULTS / f'{args.page}.md.j2', values))
    print(file)


if __name__ == '__main__':
    cli.run(main)
