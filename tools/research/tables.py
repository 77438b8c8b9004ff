# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Result tables: one CSV file per study in docs/results.

A sweep writes one JSON file per run. This tool makes the table of a study
from these files, or with --unpack the files from the table.
"""

import csv
import json
from io import StringIO
from pathlib import Path

import pandas as pd
from scipy.stats import sem, t

from mmclca import cli
from mmclca.sweep.results import read_result
from mmclca.sweep.runs import RunKey
from mmclca.utils.files import replace_text
from mmclca.utils.provenance import provenance

RESULTS = Path('docs/results')
# text columns; all other columns contain JSON
TEXTS = ('config_hash', 'commit', 'machine', 'started', 'finished')
TEXTS += ('run.dataset', 'run.backbone', 'run.method', 'run.clca')
TEXTS += ('run.variant',)
SHORT = ',', ':'


def read_sweep(file):
    """Read sweep results from a CSV file, as written by the runs."""
    with open(file, encoding='utf-8', newline='') as lines:
        return [nested(row) for row in csv.DictReader(lines)]


def nested(row):
    """Convert a row to a result; skip empty numbers and versions, except
    ``cpu_seconds``, which resumed runs lack."""
    result = {}
    for name, cell in row.items():
        if cell or name in (*TEXTS, 'cpu_seconds'):
            section, _, key = name.partition('.')
            section_values = result.setdefault(section, {}) if key else result
            is_text = name in TEXTS or section == 'versions'
            section_values[key or section] = (
                cell if is_text else json.loads(cell or 'null')
            )
    return result


def flat(result):
    """Flatten a result to columns such as ``run.seed``."""
    row = {}
    for name, value in result.items():
        inner = value if isinstance(value, dict) else {'': value}
        for key, inner_value in inner.items():
            column = f'{name}.{key}' if key else name
            is_text = isinstance(inner_value, str)
            row[column] = (
                inner_value
                if is_text
                else json.dumps(inner_value, separators=SHORT)
            )
    return {k: '' if v == 'null' else v for k, v in row.items()}


def read_results(folder):
    """Read the JSON files in a sweep folder, by name."""
    if not folder.is_dir():
        raise FileNotFoundError(f'results folder {folder} not found')
    # files of killed writers begin with a dot
    results = map(read_result, sorted(folder.glob('[!.]*.json')))
    return [result for result in results if result is not None]


def read_files(folder):
    """Read the JSON files of a sweep, each with the accuracies of probes of
    its initial weights where the folder ``starts`` has them."""
    results = read_results(folder)
    for result in results:
        start = folder / f'starts/{RunKey(**result["run"]).name}.json'
        if start.exists():
            result['start'] = json.loads(start.read_text('utf-8'))
    return results


def write_sweep(results, file):
    """Write sweep results as a table."""
    rows = [flat(result) for result in results]
    names = dict.fromkeys(name for row in rows for name in row)
    cell = StringIO()
    table = csv.DictWriter(cell, names, restval='', lineterminator='\n')
    table.writeheader()
    table.writerows(rows)
    replace_text(file, cell.getvalue())


def unpack(results, folder):
    """Write one JSON file per run, so that a sweep resumes from a table."""
    for result in results:
        file = folder / f'{RunKey(**result["run"]).name}.json'
        replace_text(file, json.dumps(result, indent=1) + '\n')


def read(study):
    """Read a study's table, empty if missing."""
    file = RESULTS / f'{study}.csv'
    if not file.exists():
        return pd.DataFrame()
    table = pd.read_csv(file, keep_default_na=False, na_values=[''])
    texts = table.select_dtypes(exclude='number').columns
    return table.fillna(dict.fromkeys(texts, ''))


def select(table, keys):
    """Return the rows with these values."""
    for name, value in keys.items():
        table = table[table[name] == value]
    return table


def kept(study, measure, wanted):
    """Return a study's table; measure and store missing rows first.

    ``wanted`` has pairs: columns identifying some rows, and the arguments for
    ``measure``, which returns these rows without the columns.
    """
    table = read(study)
    for keys, arguments in wanted:
        if table.empty or select(table, keys).empty:
            rows = pd.DataFrame([keys | row for row in measure(*arguments)])
            table = pd.concat([table, rows], ignore_index=True)
            write(study, table)
    return table


def write(study, table):
    """Write a study's table, and record machine and versions."""
    replace_text(RESULTS / f'{study}.csv', format_csv(table))
    here = provenance()
    row = dict(study=study, machine=here['machine'], **here['versions'])
    other_machines = read('machines')
    other_machines = (
        other_machines[other_machines.study != study]
        if len(other_machines)
        else other_machines
    )
    noted = pd.concat([other_machines, pd.DataFrame([row])])
    replace_text(RESULTS / 'machines.csv', format_csv(noted))


def half_width(differences):
    """Return half the width of the 95% t interval of a mean difference."""
    return t.ppf(0.975, len(differences) - 1) * sem(differences)


def format_csv(table):
    """Return a table as CSV; nine digits per number."""
    return table.to_csv(index=False, float_format='%.9g')


def read_machine(study):
    """Return machine and versions for a study."""
    row = read('machines').set_index('study').loc[study].to_dict()
    return dict(machine=row.pop('machine'), versions=row)


def main():
    parser = cli.Parser(description=__doc__)
    parser.add('study', 'name of a sweep, such as leaf40')
    parser.add('folder', 'folder of JSON files, one per run', type=Path)
    parser.flag('--unpack', 'write the files from the table')
    args = parser.parse_args()
    file = RESULTS / f'{args.study}.csv'
    if args.unpack:
        unpack(read_sweep(file), args.folder)
    else:
        write_sweep(read_files(args.folder), file)
    print(args.folder if args.unpack else file)


if __name__ == '__main__':
    cli.run(main)
