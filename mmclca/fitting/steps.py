# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The steps of a fit, in their order: from photographs to a report."""

import time
from dataclasses import replace

from mmclca.datasets.photographs import Checked

from .model import cost_of, make_plan
from .probing import measure, run_probe
from .record import FitRecord, ModelFolder
from .report import write_report
from .screen import Log, cost_line, end_lines, probe_lines, start_lines
from .training import improve


def do_steps(
    files: ModelFolder,
    record: FitRecord,
    checked: Checked,
    device: str | None,
    log: Log,
    overwrite: bool = False,
    probe_only: bool = True,
) -> FitRecord:
    """Do the steps of a fit that the record does not have yet.

    Each returns its part of the record, which is written at once; before the
    model is chosen nothing is.
    """
    plan = make_plan(files, record, checked, device)
    record = replace(record, **plan.facts())
    if overwrite:
        files.clear()
    files.begin(record)
    log.open(files.log)
    began, before = time.perf_counter(), record.seconds
    log.tell_user(*start_lines(plan, record))
    if record.cost is None:
        record = files.add(record, cost=cost_of(plan))
    log.tell_user(cost_line(plan, record.cost))
    if record.probe is None:
        is_trained = record.final == 'trained'
        record = files.add(record, **run_probe(plan, is_trained))
    log.tell_user(*probe_lines(record))
    # what training writes is no part of this draft
    record = files.publish(record, final=record.final or 'probe')
    if not probe_only and record.training is None:
        record = files.publish(record, **improve(plan, record, log))
    held_out = checked.photographs.without({*plan.training.paths})
    if len(held_out) and record.held_out is None:
        found, _ = measure(files.model, held_out, plan.device)
        record = files.add(record, held_out=found)
    seconds = before + time.perf_counter() - began
    record = files.publish(record, seconds=seconds)
    write_report(files.path)
    if record.training:
        for checkpoint in files.training.glob('*/*.pth'):
            checkpoint.unlink()  # what it takes to go on, thrice a model
    log.tell_user(*end_lines(record, files.path))
    return record
