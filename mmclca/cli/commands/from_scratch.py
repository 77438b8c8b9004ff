# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/from_scratch.py`` does."""

import json
from functools import partial

from mmclca.sweep.from_scratch import probe_start, table_of_runs
from mmclca.sweep.grid import read_grid
from mmclca.sweep.results import read_results
from mmclca.sweep.template import render
from mmclca.utils.atomic_write import replace_text

from .. import plain_errors


def starts_of(configs, folder):
    """What probes of initial weights reach, by cell; measured once."""
    found = {}
    for cell, cfg in configs.items():
        file = folder / f'{cell.name}.json'
        if not file.exists():
            record = probe_start(cfg)
            replace_text(file, json.dumps(record, indent=1) + '\n')
            print(file, flush=True)
        found[cell.name] = json.loads(file.read_text())
    return found


def facts_of(results):
    """Where and with what the runs were made, for the page."""
    first, last = results[0], max(results, key=lambda r: r['finished'])
    return dict(
        machine=first['machine'],
        versions=', '.join(
            f'{name} {first["versions"][name]}'
            for name in ('python', 'torch', 'mmpretrain')
        ),
        date=last['finished'][:10],
        minutes=round(sum(r['seconds'] for r in results) / 60),
    )


def main(args):
    with plain_errors():
        configs = read_grid(args.grid).configs()
        results = read_results(args.results)
        if not results:
            raise FileNotFoundError(
                f'{args.results} has no results: run tools/sweep.py '
                f'{args.grid} and copy its JSON files there'
            )
        text = render(
            args.template,
            table=partial(table_of_runs, results),
            starts=partial(starts_of, configs, args.results / 'starts'),
            facts=facts_of(results),
        )
    replace_text(args.page, text)
    print(args.page)
