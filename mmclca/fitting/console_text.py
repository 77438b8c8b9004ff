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
from mmclca.utils.messages import join_first

from .candidates import get_measured_accuracies
from .model_config import build_config
from .plan import Plan
from .probing import cross_validate_best
from .record import FitRecord
from .record_parts import (
    Measurement,
    PhotoCost,
    describe_interval,
    describe_share,
    describe_variant,
    require_part,
)


def row(label: str, value: str) -> str:
    """Join a label and a value in aligned columns."""
    return f'{label:10} {value}'


def list_rows(label: str, values: Iterable[str]) -> Iterator[str]:
    """Align several values below one label."""
    for value in values:
        yield row(label, value)
        label = ''


def start_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe the photos, their classes and the weights."""
    names = [*record.photos.counts]
    if len(names) > 6:
        names = [*names[:3], '...', *names[-2:]]
    yield row('Data', record.photos.describe())
    yield row('  Classes', ', '.join(names))
    yield from problem_lines(record.photos.problems)
    for note in plan.pretrained.notes:
        yield row('Warning', note)


def model_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe backbone, compared backbones, and the model with its cost."""
    yield row('Weights', plan.pretrained.describe())
    for compared in record.considered:
        yield row('Backbone', compared.describe())
    cost = require_part(record.cost, 'cost')
    model = require_part(record.model, 'model').describe()
    full = _describe_full(plan, f'{cost.gmacs_full:.3g}')
    yield row('Model', f'{model}: {cost.describe()}{full}')


def problem_lines(problems: Iterable[Problem]) -> Iterator[str]:
    """Describe skipped photos and possible mistakes."""
    for problem in problems:
        indent = '' if problem.label == 'Warning' else '  '
        yield row(indent + problem.label, problem.message)


def latency_lines(plan: Plan, cost: PhotoCost) -> Iterator[str]:
    """Describe the latency, and warn if the machine was busy."""
    ms_full = require_part(cost.ms_full, 'ms_full')
    full = _describe_full(plan, f'{ms_full:.3g} ms')
    yield row('Latency', f'{cost.describe_latency()}{full}')
    if cost.busy:
        yield row('Warning', cost.busy)


def _describe_full(plan: Plan, cost: str) -> str:
    """Describe the cost of the full ViT in brackets; empty for others."""
    return f' (full ViT: {cost})' if plan.variant.out_type else ''


def probe_line(record: FitRecord) -> str:
    """Describe the accuracy before a fine-tuning, which takes minutes."""
    probe = record.estimate
    took = f'(took {probe.seconds:.0f} s)'
    return row('Accuracy', f'{probe.describe()} before fine-tuning {took}')


def near_duplicate_lines(record: FitRecord) -> Iterator[str]:
    """List classes with near-duplicates."""
    counts = record.photos.near_duplicate_counts
    if counts:
        photos = f'{sum(counts.values())} photos of {join_first(counts, 3)}'
        yield row('Near-dupl.', f'{photos}; kept in one fold, counted once')


def resumed_training_line(record: FitRecord) -> str:
    """Describe the result of an earlier fine-tuning."""
    result = 'kept' if record.final == 'trained' else 'discarded'
    return row('Fine-tune', f'{result} in an earlier run')


def class_lines(
    previous: FitRecord, record: FitRecord, name: str
) -> Iterator[str]:
    """Compare a model before and after a class was added."""
    recall = record.estimate.per_class[name]
    before, after = (
        f'{describe_share(x.estimate.accuracy)} '
        f'({len(x.photos.classes)} classes)'
        for x in (previous, record)
    )
    count = previous.photos.counts.get(name, 0)
    added = f'{recall.n} photos (previously {count})'
    numbers = (len(x.photos.classes) for x in (previous, record))
    yield row('Classes', ' -> '.join(map(str, numbers)))
    yield row('Added', f'{name}: {added}, recall {recall.describe()}')
    yield row('Accuracy', f'{after}, previously {before}')


def describe_accuracy(record: FitRecord) -> str:
    """Return the accuracy of a model with its interval."""
    best = record.best
    interval = describe_interval(best.low, best.high)
    return f'{describe_share(best.accuracy)} accuracy{interval}'


def describe_claim(record: FitRecord) -> str:
    """Return the accuracy of a model, and for which photos it holds.

    Empty if the accuracy was not measured.
    """
    if record.best.accuracy is None:
        return ''
    return f'{describe_accuracy(record)} on {describe_validity(record)}'


def describe_validity(record: FitRecord) -> str:
    """Describe the photos for which accuracy and interval hold."""
    if record.test:
        return 'new photos like those in val and test'
    if record.is_grouped:
        return 'new photos of new groups'
    return (
        'new photos taken on the same days, in the same places and with the '
        'same cameras'
    )


def result_lines(record: FitRecord, is_console: bool = False) -> Iterator[str]:
    """Describe accuracy, measurement and threshold of the final model.

    Options of the command line are named only if ``is_console``.
    """
    note = (
        ''
        if record.is_measured
        else (' (linear probe; the fine-tuned model was not measured)')
    )
    yield row('Result', describe_accuracy(record) + note)
    yield from list_rows('', _describe_further_accuracies(record))
    is_weighted = record.call.options.class_weights
    if is_console and record.is_uneven and not is_weighted:
        yield row('', 'to weight classes equally: --class-weights balanced')
    yield from list_rows('Measured', _describe_measurement(record))
    yield row('Valid for', describe_validity(record))
    if is_console and not (record.test or record.is_grouped):
        yield row('', 'elsewhere: group photos by day or place (--groups)')
    threshold = require_part(record.threshold, 'threshold')
    yield from list_rows('Unknown', threshold.describe())


def _describe_further_accuracies(record: FitRecord) -> Iterator[str]:
    """Describe the linear probe if it is not the result, and the recall."""
    probe = record.estimate
    if probe.accuracy is None:
        return
    if record.best is not probe:
        method = 'linear probe, cross-validation'
        if record.final == 'trained':
            method = 'before fine-tuning (linear probe, cross-validation)'
        yield f'{method}: {probe.describe()}'
    if record.is_uneven:
        yield f'macro recall {describe_share(probe.macro_recall)}'


def saved_lines(
    folder: Path, exports: Sequence[Path], is_console: bool = True
) -> Iterator[str]:
    """List written and removed files, and the next commands.

    ``exports`` are the exported files of the previous model. Commands are
    listed only if ``is_console``.
    """
    quoted = shlex.quote(str(folder))
    program = f'{shlex.quote(os.path.basename(sys.executable))} -m mmclca'
    for file in (file for file in exports if not file.exists()):
        name = file.relative_to(folder).as_posix()
        flag = find_format(file).flag
        again = f'; run: {program} export {quoted} {flag}'
        yield row('Removed', f'outdated {name}{again * is_console}')
    yield row('Saved', f'{folder}/ (model.pth, report.html, photographs.csv)')
    if is_console:
        yield row('Next', f'open {quoted}/report.html in a browser')
        arguments = 'NEW_PHOTOS --out results.csv'
        yield row('', f'{program} predict {quoted} {arguments}')
        web = FORMATS['web'].flag
        yield row('', f'{program} export {quoted} {web} (app for phones)')


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
    yield '   (mean accuracy on eleven datasets with 3 photos per class)'
    best, cv = cross_validate_best(plan)
    share = float(cv.accuracy.mean()) if cv.independent else None
    description = describe_variant(best.variant)
    gmacs = require_part(record.cost, 'cost').gmacs
    yield row(
        'Full ViT',
        f'on your photos: {description} {describe_share(share)} at '
        f'{_count_gmacs(plan, best.variant):.3g} GMACs, this model '
        f'{describe_share(record.estimate.accuracy)} at {gmacs:.3g}; '
        f'--best selects {description}',
    )


def _count_gmacs(plan: Plan, variant: Variant) -> float:
    """Count the GMACs of a candidate."""
    number = len(plan.training_photos.classes)
    config = build_config(plan.pretrained, variant, number)
    return count_config(config.model).flops / 1e9


def _describe_measurement(record: FitRecord) -> Iterator[str]:
    """Describe the photos and the method behind the accuracy."""
    best, probe = record.best, record.estimate
    if isinstance(best, Measurement):
        photos = 'photos in val and test'
        yield f'on {best.n} {photos if record.test else "held-out photos"}'
    elif probe.accuracy is None:
        yield f'not yet: {why_unmeasured(record)}'
    else:
        yield from probe.describe_method()


def why_unmeasured(record: FitRecord) -> str:
    """Return what is missing to test any class: photos, or groups."""
    if record.is_grouped:
        return 'each class has one group; add or name a second one'
    if max(record.photos.counts.values()) > 1:
        return 'all photos of a class are near-duplicates; add others'
    return 'add a second photo to each class'
