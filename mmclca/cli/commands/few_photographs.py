# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What ``tools/benchmark/few_photographs.py`` does."""

import json

from mmclca.benchmark import Setting
from mmclca.benchmark.few_photographs.arms import WEIGHTS, probe_arms
from mmclca.benchmark.few_photographs.measuring import measure_missing
from mmclca.benchmark.few_photographs.speed import milliseconds
from mmclca.sweep.cell import Cell
from mmclca.sweep.few_photographs.changes import table_of_changes, to_changes
from mmclca.sweep.few_photographs.page import compared, write_page
from mmclca.sweep.few_photographs.provenance import provenance
from mmclca.sweep.few_photographs.runs import (
    is_trained_arm,
    read_probes,
    to_runs,
    trained_model,
)
from mmclca.sweep.grid import read_grid
from mmclca.sweep.identity import config_hash
from mmclca.sweep.results import read_results
from mmclca.utils.atomic_write import replace_text

from .. import plain_errors
from ..benchmark import begin

NUM_CLASSES = 40  # of both data sets


def measure(args, facts):
    """Measure the probe arms that have no result yet."""
    for dataset in args.datasets:
        for backbone in args.backbones:
            for file in measure_missing(
                probe_arms(backbone),
                args.data / dataset,
                args.weights / WEIGHTS[backbone],
                args.results / 'probes',
                facts,
            ):
                print(file, flush=True)


def models_of(args, results):
    """Config of the model of each arm, by its name."""
    models = {
        arm.network: arm.model(NUM_CLASSES)
        for backbone in args.backbones
        for arm in probe_arms(backbone)
    }
    if not results:
        return models
    configs = read_grid(args.grid).configs()
    by_name = {cell.name: config for cell, config in configs.items()}
    return models | {
        trained_model(result['cell']): by_name[name_of(result['cell'])].model
        for result in results
    }


def name_of(cell):
    """Name of the cell of a result."""
    return Cell(**cell).name


def speeds(args, models, facts):
    """Milliseconds of all models, and where and when they were timed.

    Read again, unless there are other models: then all are timed together.
    """
    file = args.results / 'speed' / 'cpu.json'
    digests = {k: config_hash(dict(model=v)) for k, v in models.items()}
    if file.exists():
        there = json.loads(file.read_text())
        if digests.items() <= there['models'].items():
            return there
    found = milliseconds(models, args.rounds)
    record = dict(milliseconds=found, models=digests, machine=facts)
    replace_text(file, json.dumps(record, indent=1) + '\n')
    return record


def trained_in(folder):
    """Results of trained arms in a folder, none where it is not there."""
    results = read_results(folder) if folder.is_dir() else []
    return [result for result in results if is_trained_arm(result)]


def told_changes(results, runs):
    """Table of changes to our recipe, '' where none was measured."""
    changes = to_changes(to_runs([], results), runs) if results else ()
    return table_of_changes(changes) if len(changes) else ''


def main(args):
    facts = begin(__file__, Setting(batch=1))
    with plain_errors():
        if not args.page_only:
            measure(args, facts)
        results, why = trained_in(args.results), trained_in(args.why)
        timed = speeds(args, models_of(args, results), facts)
        probes = read_probes(args.results / 'probes')
        runs = to_runs(probes, results)
        arms = compared(runs, timed['milliseconds'])
        told = provenance(probes, [*results, *why], timed)
        files = args.template, args.page, args.picture
        write_page(*files, arms, told, told_changes(why, runs))
    print(args.page, args.picture, sep='\n')
