# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Merge tools/benchmark/throughput.py results into docs/benchmarks.

Each study has one CSV file with one row per model; machines.csv has one row
per run: the machine, the versions, the command and the settings.
"""

import json
from pathlib import Path

import pandas as pd
from tables import format_csv

from mmclca import cli
from mmclca.utils.files import replace_text

FOLDER = Path('docs/benchmarks')


def merge(study, file):
    """Add the rows in a JSON file to a study; replace its earlier rows."""
    content, run = json.loads(file.read_text('utf-8')), file.stem
    batch = dict(batch=content['setting'].pop('batch'))
    rows = [dict(batch, run=run) | row for row in content['results']]
    rows = pd.DataFrame(rows).drop(columns='seconds', errors='ignore')
    replace(study, run, rows)
    columns = dict(run=run, study=study, **content['machine'])
    replace('machines', run, pd.DataFrame([columns | content['setting']]))


def replace(name, run, rows):
    """Write rows to a table; replace earlier rows with the same run."""
    file = FOLDER / f'{name}.csv'
    rows.insert(0, 'run', rows.pop('run'))
    if file.exists():
        previous = pd.read_csv(file)
        kept = previous[previous.run != run].to_dict('records')
        rows = pd.DataFrame(kept + rows.to_dict('records'))
    replace_text(file, format_csv(rows))
    print(file)


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('study', 'name of the table, such as reducers or gpu')
    parser.add('files', 'files of --out (.json)', nargs='+', type=Path)
    args = parser.parse_args()
    for file in args.files:
        merge(args.study, file)


if __name__ == '__main__':
    cli.run(main)
