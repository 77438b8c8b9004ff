# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lines printed by a fit."""

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from mmclca.datasets.photos import Problem
from mmclca.evaluation.cost import count_config
from mmclca.evaluation.open_set import NEAREST
from mmclca.models import Variant
from mmclca.utils.messages import join_first

from .budget import COST_UNITS
from .model import Plan, accuracies_of, classifier_config, describe
from .probing import best_probe
from .record import FitRecord


def row(label: str, text: str) -> str:
    """Join a label and a text in aligned columns."""
    return f'{label:10} {text}'


def start_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe the photos, their classes and the weights."""
    counts, names = record.counts.values(), [*record.counts]
    shown = names[:3] + ['...'] + names[-2:] if len(names) > 6 else names
    low, high = min(counts), max(counts)
    each = f'{low}' if low == high else f'{low} to {high}'
    classes = f'{len(counts)} classes ({each} per class)'
    yield row('Data', f'{sum(counts)} photos, {classes}')
    yield row('  Classes', ', '.join(shown))
    yield from problem_lines(record.problems)
    for note in plan.pretrained.notes:
        yield row('Warning', note)


def model_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """Describe backbone, compared backbones, and the model with its cost."""
    yield row('Weights', plan.pretrained.describe())
    for one in record.considered:
        costs = [f'{one[x]:.3g} {COST_UNITS[x]}' for x in COST_UNITS if one[x]]
        found = [one['model'], *costs, f'{_share(one["accuracy"])} accuracy']
        text = ', '.join(found) if costs else 'over the budget'
        yield row('Backbone', f'{one["source"]}: {text}')
    yield cost_line(plan, record.model, record.cost)


def problem_lines(problems: Iterable[Problem]) -> Iterator[str]:
    """Describe skipped photos and possible mistakes."""
    for problem in problems:
        indent = '' if problem.label == 'Warning' else '  '
        yield row(indent + problem.label, problem.message)


def cost_line(plan: Plan, model: dict, cost: dict) -> str:
    """Describe the model and its multiply-accumulates."""
    full = _full(plan, f'{cost["gmacs_full"]:.3g}')
    text = describe(plan.variant)
    depth, layers = model['depth'], model['layers']
    if depth and layers and layers[-1] < depth - 1:
        text += f', first {layers[-1] + 1} of {depth} layers'
    return row('Model', f'{text}: {cost["gmacs"]:.3g} GMACs{full}')


def time_lines(plan: Plan, cost: dict) -> Iterator[str]:
    """Describe the latency, and warn if the machine was busy."""
    full = _full(plan, f'{cost["ms_full"]:.3g} ms')
    text = f'{cost["ms"]:.3g} ms per photo, {cost["runtime"]}{full}'
    yield row('Latency', text)
    if cost['busy']:
        yield row('Warning', cost['busy'].removeprefix('; '))


def _full(plan: Plan, cost: str) -> str:
    return f' (full ViT: {cost})' if plan.variant.out_type else ''


def probe_line(record: FitRecord) -> str:
    """Describe the accuracy before a fine-tuning, which takes minutes."""
    probe = record.probe
    text = f'{_accuracy(probe)} before fine-tuning'
    return row('Accuracy', f'{text} (took {probe["seconds"]:.0f} s)')


def series_lines(record: FitRecord) -> Iterator[str]:
    """List classes with near-duplicates."""
    if record.near_duplicate_counts:
        number = sum(record.near_duplicate_counts.values())
        text = (
            f'{number} photos of {join_first(record.near_duplicate_counts, 3)}'
        )
        yield row('Near-dupl.', f'{text}; kept in one fold, counted once')


def tuning_line(record: FitRecord) -> str:
    """Describe the result of an earlier fine-tuning."""
    result = 'kept' if record.final == 'trained' else 'discarded'
    return row('Fine-tune', f'{result} in an earlier run')


def class_lines(had: FitRecord, record: FitRecord, name: str) -> Iterator[str]:
    """Compare a model before and after a class was added."""
    new, number = record.probe['per_class'][name], had.counts.get(name, 0)
    recall = _share(new['recall'])
    if new['recall'] is not None:
        recall += _interval(new)
    before, after = (
        f'{_share(x.probe["accuracy"])} ({len(x.classes)} classes)'
        for x in (had, record)
    )
    added = f'{new["n"]} photos (previously {number})'
    yield row('Classes', f'{len(had.classes)} -> {len(record.classes)}')
    yield row('Added', f'{name}: {added}, recall {recall}')
    yield row('Accuracy', f'{after}, previously {before}')


def describe_accuracy(record: FitRecord) -> str:
    """Return the accuracy of a model with its interval."""
    best = record.best
    interval = _interval(best) if best['accuracy'] is not None else ''
    return f'{_share(best["accuracy"])} accuracy{interval}'


def describe_claim(record: FitRecord) -> str:
    """Return the accuracy of a model, and for which photos it holds.

    Empty if the accuracy was not measured.
    """
    if record.best['accuracy'] is None:
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
    yield row('Result', describe_accuracy(record) + _unmeasured(record))
    yield from (row('', text) for text in _further_accuracies(record))
    if is_console and record.is_uneven and not record.call['class_weights']:
        yield row('', 'to weight classes equally: --class-weights balanced')
    yield from _rows('Measured', _measured(record))
    yield row('Valid for', describe_validity(record))
    if is_console and not (record.test or record.is_grouped):
        yield row('', 'elsewhere: group photos by day or place (--groups)')
    yield from _rows('Unknown', _unknown(record.threshold))


def _rows(label: str, texts: Iterable[str]) -> Iterator[str]:
    """Align several texts below one label."""
    for text in texts:
        yield row(label, text)
        label = ''


def _unmeasured(record: FitRecord) -> str:
    if record.is_measured:
        return ''
    return ' (linear probe; the fine-tuned model was not measured)'


def _further_accuracies(record: FitRecord) -> Iterator[str]:
    """Describe the linear probe if it is not the result, and the recall."""
    probe, found = record.probe, record.best
    if probe['accuracy'] is None:
        return
    if found is not probe:
        what = 'linear probe, cross-validation'
        if record.final == 'trained':
            what = 'before fine-tuning (linear probe, cross-validation)'
        yield f'{what}: {_accuracy(probe)}'
    if record.is_uneven:
        yield f'macro recall {probe["macro_recall"]:.1%}'


def saved_lines(
    folder: Path, exports: Sequence[Path], is_console: bool = True
) -> Iterator[str]:
    """List written and removed files, and the next commands.

    ``exports`` are the exported files of the previous model. Commands are
    listed only if ``is_console``.
    """
    place = shlex.quote(str(folder))
    program = f'{shlex.quote(os.path.basename(sys.executable))} -m mmclca'
    for file in (file for file in exports if not file.exists()):
        name = file.relative_to(folder).as_posix()
        kind = '--web' if '/' in name else '--int8' * ('.int8.' in name)
        again = f'; run: {program} export {place} {kind}'.rstrip()
        yield row('Removed', f'outdated {name}{again * is_console}')
    yield row('Saved', f'{folder}/ (model.pth, report.html, photographs.csv)')
    if is_console:
        yield row('Next', f'open {place}/report.html in a browser')
        table = 'NEW_PHOTOS --out results.csv'
        yield row('', f'{program} predict {place} {table}')
        yield row('', f'{program} export {place} --web (app for phones)')


def comparison_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
    """List the candidates, and compare the most accurate with the model."""
    if plan.variant.out_type is None:
        yield row('Candidates', 'none: only ViT models have been compared')
        return
    within = plan.call['budget'] or 'half the cost of the full ViT'
    yield row('Candidates', f'the first within {within} is selected (*)')
    yield '   accuracy  GMACs  model'
    for variant, accuracy in accuracies_of(plan.pretrained).items():
        mark = '*' if describe(variant) == describe(plan.variant) else ' '
        gmacs = _gmacs(plan, variant)
        yield f' {mark} {accuracy:7.1f}%  {gmacs:5.3f}  {describe(variant)}'
    yield '   (mean accuracy on eleven datasets with 3 photos per class)'
    best, found = best_probe(plan)
    share = float(found.accuracy.mean()) if found.independent else None
    yield row(
        'Full ViT',
        f'on your photos: {describe(best.variant)} {_share(share)} at '
        f'{_gmacs(plan, best.variant):.3g} GMACs, this model '
        f'{_share(record.probe["accuracy"])} at {record.cost["gmacs"]:.3g}; '
        f'--best selects {describe(best.variant)}',
    )


def _gmacs(plan: Plan, variant: Variant) -> float:
    number = len(plan.training.classes)
    config = classifier_config(plan.pretrained, variant, number)
    return count_config(config.model).flops / 1e9


def _share(value: float | None) -> str:
    return 'unknown' if value is None else f'{value:.1%}'


def _interval(found: dict) -> str:
    return f' (95% CI {100 * found["low"]:.1f}-{found["high"]:.1%})'


def _accuracy(found: dict) -> str:
    if found['accuracy'] is None:
        return 'unknown'
    return f'{found["accuracy"]:.1%}{_interval(found)}'


def _unknown(found: dict) -> list[str]:
    """Describe the unknown-class threshold and its false-alarm rate."""
    if found['score'] != NEAREST:
        return ['detection is off: too few photos to set a threshold']
    return [
        f'flagged if similarity < {found["threshold"]:.3f}',
        f'false alarms {found["false_alarms"]:.1%}{_interval(found)}',
        'similar new classes are often not flagged',
    ]


def _measured(record: FitRecord) -> list[str]:
    """Describe the photos and the method behind the accuracy."""
    found, probe = record.best, record.probe
    if found is not probe:
        kind = 'photos in val and test' if record.test else 'held-out photos'
        return [f'on {found["n"]} {kind}']
    if probe['accuracy'] is None:
        return [f'not yet: {why_unmeasured(record)}']
    classes = probe['per_class'].values()
    tested = [one['n'] for one in classes if one['recall'] is not None]
    text = f'on {sum(tested)} photos'
    if len(tested) < len(classes):
        text += f' of {len(tested)} of {len(classes)} classes'
    return [
        f'{text}, {probe["folds"]}-fold cross-validation repeated '
        f'{probe["repeats"]} times',
        f'(each fold trains on {1 - 1 / probe["folds"]:.0%} of the photos, '
        'the saved model on all)',
    ]


def why_unmeasured(record: FitRecord) -> str:
    """Return what is missing to test any class: photos, or groups."""
    if record.is_grouped:
        return 'each class has one group; add or name a second one'
    if max(record.counts.values()) > 1:
        return 'all photos of a class are near-duplicates; add others'
    return 'add a second photo to each class'
