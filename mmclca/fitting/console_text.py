# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lines printed by a fit."""

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mmclca.datasets.photos import Problem
from mmclca.evaluation.cost import count_config
from mmclca.export_formats import FORMATS, find_format
from mmclca.models import Variant

from .candidates import get_measured_accuracies
from .cost_parts import PhotoCost
from .log import Log
from .model_config import build_config
from .plan import Plan
from .probing import cross_validate_best
from .record import FitRecord
from .record_description import RecordDescription, describe_record
from .record_parts import describe_variant, require_part
from .spread_text import describe_coinciding, describe_spreads
from .wording import Description, LabeledLines, percent

UNDO_CHANGE = 'undo this change'


def row(label: str, value: str) -> str:
    """Join a label and a value in aligned columns."""
    return f'{label:10} {value}'


def list_rows(label: str, values: Iterable[str]) -> Iterator[str]:
    """Align several values below one label."""
    for value in values:
        yield row(label, value)
        label = ''


def format_facts(facts: Iterable[LabeledLines]) -> Iterator[str]:
    """Align facts in lines for the screen."""
    for fact in facts:
        yield from list_rows(fact.label, fact.lines)


def data_lines(record: FitRecord) -> Iterator[str]:
    """Describe the photos; warn first if classes coincide with days."""
    coinciding = describe_coinciding(record)
    yield from list_rows('Warning', coinciding.lines)
    yield row('Data', record.photos.describe())


def spread_lines(record: FitRecord) -> Iterator[str]:
    """Name the classes, and describe their days and groups."""
    names = [*record.photos.counts]
    if len(names) > 6:
        names = [*names[:3], '...', *names[-2:]]
    yield row('  Classes', ', '.join(names))
    for title, lines in describe_spreads(record).items():
        yield from list_rows(f'  {title}', lines)


def start_problem_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe problems of photos and weights."""
    yield from problem_lines(record.photos.problems)
    for note in plan.pretrained.notes:
        yield row('Warning', note)


def saved_features_lines(plan: Plan) -> Iterator[str]:
    """Tell how many features an interrupted fit has saved, if any."""
    if not plan.adds_photos and 0 < plan.saved_features < 1:
        share = f'{plan.saved_features:.0%}'
        yield row('Features', f'{share} were saved by an interrupted fit')


def model_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe backbone, compared backbones, and the model with its cost."""
    yield row('Weights', require_part(record.weights, 'weights').describe())
    for compared in record.considered:
        yield row('Backbone', compared.describe())
    (model,) = require_part(record.model, 'model').describe().lines
    computation, *_ = require_part(record.cost, 'cost').describe()
    cost = computation.describe(is_vit=bool(plan.variant.out_type))
    yield row('Model', f'{model}: {cost}')


def problem_lines(problems: Iterable[Problem]) -> Iterator[str]:
    """Describe skipped photos and possible mistakes."""
    for problem in problems:
        indent = '' if problem.consequence == 'warning' else '  '
        yield row(indent + problem.label, problem.message)


def latency_lines(plan: Plan, cost: PhotoCost) -> Iterator[str]:
    """Describe the latency, and warn if the machine was busy."""
    _, latency = cost.describe()
    yield row('Latency', latency.describe(is_vit=bool(plan.variant.out_type)))
    if cost.busy:
        yield row('Warning', cost.busy)


def probe_line(record: FitRecord) -> str:
    """Describe the accuracy before a fine-tuning, which takes minutes."""
    probe = record.estimate
    accuracy = probe.describe().summary
    return row('Probe', f'{accuracy} (took {probe.seconds:.0f} s)')


def near_duplicate_lines(record: FitRecord) -> Iterator[str]:
    """List classes with near-duplicates."""
    near_duplicates = record.photos.describe_near_duplicates()
    yield from list_rows('Near-dupl.', near_duplicates.lines)


def resumed_training_line(record: FitRecord) -> str:
    """Describe the result of an earlier fine-tuning."""
    result = describe_record(record).fine_tuning
    return row('Fine-tune', f'{result} (earlier run)')


def result_lines(record: FitRecord, is_console: bool = False) -> Iterator[str]:
    """Describe accuracy, measurement and threshold of the final model.

    Options of the command line are named only if ``is_console``.
    """
    described = describe_record(record)
    note = f' ({described.note})' if described.note else ''
    result = described.result.summary + note
    if described.why_unmeasured:
        result = f'the accuracy was not measured: {described.why_unmeasured}'
    yield row('Result', result)
    yield from list_rows('', described.further_accuracies)
    yield from _list_facts('', described.class_sizes, is_console)
    yield from list_rows('Measured', described.result.method)
    yield from _list_facts('Valid for', described.validity, is_console)
    yield from _shortcut_lines(described, is_console)
    yield from _list_facts('Unknown', described.threshold, is_console)
    yield from _list_facts('Sure', described.guarantee, is_console)


def plain_result_lines(record: FitRecord) -> Iterator[str]:
    """Describe accuracy and warnings of the final model in plain words."""
    described = describe_record(record)
    result = described.result.plain
    if described.note:
        result = f'Before fine-tuning: {result}'
    if described.why_unmeasured:
        result = f'the accuracy was not measured: {described.why_unmeasured}'
    yield row('Result', result)
    yield from list_rows('Valid for', described.validity.lines)
    yield from _shortcut_lines(described, is_console=False)


def _shortcut_lines(
    described: RecordDescription, is_console: bool
) -> Iterator[str]:
    """Warn of facts that tell the classes without a look at the plant."""
    for warning in described.shortcuts.warnings:
        yield row('Warning', warning)
    yield from _list_facts('', described.shortcuts.remedies, is_console)


def _list_facts(
    label: str, description: Description, is_console: bool
) -> Iterator[str]:
    """Align the lines of a description, and its advice for a console."""
    lines, advice = [*description.lines], description.advice
    if is_console and advice:
        lines.append(f'{advice.purpose} ({advice.option})')
    yield from list_rows(label, lines)


def get_program() -> str:
    """Return the start of a command of this package, for a console."""
    return f'{shlex.quote(os.path.basename(sys.executable))} -m mmclca'


def removed_lines(
    folder: Path, exports: Sequence[Path], is_console: bool = True
) -> Iterator[str]:
    """List removed ``exports``, the exported files of the previous model.

    The command to export again is named only if ``is_console``.
    """
    quoted, program = shlex.quote(str(folder)), get_program()
    for file in (file for file in exports if not file.exists()):
        name = file.relative_to(folder).as_posix()
        flag = find_format(file).flag
        again = f'; run: {program} export {quoted} {flag}'
        yield row('Removed', f'outdated {name}{again * is_console}')


def saved_line(folder: Path) -> str:
    """Name the written files."""
    return row('Saved', f'{folder}/ (model.pth, report.html, photographs.csv)')


def next_lines(folder: Path) -> Iterator[str]:
    """List the next commands."""
    quoted, program = shlex.quote(str(folder)), get_program()
    yield row('Next', f'open {quoted}/report.html in a browser')
    arguments = 'NEW_PHOTOS --out results.csv'
    yield row('', f'{program} predict {quoted} {arguments}')
    web = FORMATS['web'].flag
    yield row('', f'{program} export {quoted} {web} (app for phones)')


def print_saved(
    log: Log, folder: Path, exports: Sequence[Path], undo: str = ''
) -> None:
    """Print removed and written files, and the next commands for a console.

    Args:
        log (Log): Log.
        folder (Path): Model folder.
        exports (Sequence[Path]): Exported files of the previous model.
        undo (str): Effect of the command ``undo``. Defaults to '': the
            command is not named.
    """
    log.print_lines(removed_lines(folder, exports, log.is_console))
    log.add_details([saved_line(folder)])
    if log.is_console:
        log.print_lines(next_lines(folder))
        if undo:
            command = f'{get_program()} undo {shlex.quote(str(folder))}'
            log.print(row('', f'{command} ({undo})'))


def comparison_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """List the candidates, and compare the most accurate with the model."""
    if plan.variant.out_type is None:
        yield row('Candidates', 'none: only ViT models have been compared')
        return
    within = plan.options.budget or 'half the cost of the full ViT'
    yield row('Candidates', f'the first within {within} is selected (*)')
    yield '   accuracy  GMACs  model'
    selected = describe_variant(plan.variant)
    for variant, accuracy in get_measured_accuracies(plan.pretrained).items():
        description = describe_variant(variant)
        mark = '*' if description == selected else ' '
        gmacs = _count_gmacs(plan, variant)
        yield f' {mark} {accuracy:7.1f}%  {gmacs:5.3f}  {description}'
    yield '   (mean accuracy on fifteen datasets with 3 photos per class)'
    best, cv = cross_validate_best(plan)
    share = float(cv.accuracy.mean()) if cv.independent else None
    description = describe_variant(best.variant)
    gmacs = require_part(record.cost, 'cost').gmacs
    yield row(
        'Full ViT',
        f'on your photos: {description} {percent(share)} at '
        f'{_count_gmacs(plan, best.variant):.3g} GMACs, this model '
        f'{percent(record.estimate.accuracy)} at {gmacs:.3g}; '
        f'--best selects {description}',
    )


def _count_gmacs(plan: Plan, variant: Variant) -> float:
    """Count the GMACs of a candidate."""
    number = len(plan.training_photos.classes)
    config = build_config(plan.pretrained, variant, number)
    return count_config(config.model).flops / 1e9
