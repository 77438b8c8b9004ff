# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Steps of a fit, in their order; a resumed fit skips finished ones."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from . import console_text, fine_tuning
from .calibration import measure_guarantee
from .cost import compute_cost, measure_latency
from .log import Log, Step
from .plan import Plan
from .probing import join_near_duplicates, run_probe
from .record import FitRecord
from .record_parts import require_part
from .report import write_report


@dataclass(frozen=True)
class StepRequest:
    """What a caller wants from the steps.

    Args:
        overwrite (bool): Whether to replace the model in the folder. Defaults
            to False.
        fine_tune (bool, optional): Whether to fine-tune; None leaves it to
            the number of photos. Defaults to False.
        check (Callable, optional): Function of the record with the linear
            probe, which raises an error to keep the previous model. Defaults
            to None.
        keep_previous (bool): Whether to keep the model in the folder, so that
            the change can be undone. Defaults to False.
    """

    overwrite: bool = False
    fine_tune: bool | None = False
    check: Callable[[FitRecord], None] | None = None
    keep_previous: bool = False


def run_steps(
    plan: Plan, record: FitRecord, log: Log, request: StepRequest
) -> FitRecord:
    """Run all steps missing from the record, except the latency.

    The record is written after each step. Nothing is written before the model
    is selected.
    """
    files = plan.files
    if not plan.adds_photos:
        record = replace(record, weights=plan.weights, model=plan.model)
    if request.overwrite:
        files.clear()
    files.begin(record)
    log.open(files.log)
    log.begin(Step.FIRST_MODEL)
    start, seconds = time.perf_counter(), record.seconds
    log.print_lines(console_text.data_lines(record))
    log.add_details(console_text.spread_lines(record))
    log.print_lines(console_text.start_problem_lines(plan, record))
    if record.cost is None:
        record = files.add(record, cost=compute_cost(plan))
    log.print_lines(console_text.saved_features_lines(plan))
    problems = record.photos.problems
    plan, record = join_near_duplicates(plan, record)
    record = files.add(record)
    log.print_lines(
        console_text.problem_lines(
            problem
            for problem in record.photos.problems
            if problem not in problems
        )
    )
    log.add_details(console_text.near_duplicate_lines(record))
    if record.probe is None:
        record = files.add(run_probe(plan, record))
    if request.check:
        request.check(record)
    if request.keep_previous:
        files.keep_previous()
    # training writes outside this draft
    record = files.publish(record, final=record.final or 'probe')
    if record.training:
        log.add_details([console_text.resumed_training_line(record)])
    elif request.fine_tune is not False and not fine_tuning.explain_skipping(
        plan, request.fine_tune
    ):
        log.add_details([console_text.probe_line(record)])
        record = files.publish(fine_tuning.fine_tune(plan, record, log))
    seconds += time.perf_counter() - start
    record = measure_guarantee(plan, record)
    record = files.publish(record, seconds=seconds)
    _write_report(plan, log)
    if record.training:  # checkpoints take three times the model's space
        files.remove_training()
    log.add_details(console_text.result_lines(record, log.is_console))
    log.print_plain(console_text.plain_result_lines(record))
    return record


def skipped_lines(plan: Plan, log: Log) -> Iterator[str]:
    """Describe why fine-tuning was skipped, and how to request it."""
    reason = fine_tuning.explain_skipping(plan, None)
    yield console_text.row(fine_tuning.LABEL, f'skipped: {reason}')
    if log.is_console and not fine_tuning.explain_impossible(plan):
        yield console_text.row(
            '', 'to fine-tune anyway, in minutes: --fine-tune'
        )


def add_latency(plan: Plan, record: FitRecord, log: Log) -> FitRecord:
    """Measure the latency unless it is known, and describe the model.

    This is the last step, since it takes long and changes no prediction:
    after an interruption, model and report are complete.
    """
    log.add_details(console_text.model_lines(plan, record))
    cost = require_part(record.cost, 'cost')
    if not cost.has_latency:
        log.begin(Step.LATENCY)
        cost = measure_latency(plan, cost)
        record = plan.files.publish(record, keep_report=True, cost=cost)
        _write_report(plan, log)
    log.add_details(console_text.latency_lines(plan, cost))
    return record


def _write_report(plan: Plan, log: Log) -> None:
    """Write the report, with new copies of photos that may be opened."""
    photo_files = plan.checked.files
    with log.status('Writing the report'):
        write_report(
            plan.files.path,
            [
                path
                for path in photo_files.sha256
                if photo_files.may_open(path)
            ],
        )
