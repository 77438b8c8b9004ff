# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Lines printed by a fit."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmclca.evaluation.cost import count_config
from mmclca.evaluation.open_set import NEAREST
from mmclca.models import Variant
from mmclca.utils.messages import first_of

from .model import UNITS, Plan, accuracies_of, classifier_config, describe
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
    yield row('Weights', plan.pretrained.describe())
    for note in plan.pretrained.notes:
        yield row('Warning', note)
    for one in record.considered:
        costs = [f'{one[x]:.3g} {UNITS[x]}' for x in UNITS if one[x]]
        found = [one['model'], *costs, f'{_share(one["accuracy"])} accuracy']
        text = ', '.join(found) if costs else 'over the budget'
        yield row('  Compared', f'{one["source"]}: {text}')


def problem_lines(problems: Sequence[str]) -> Iterator[str]:
    """Align problems of photos, such as 'Warning: text', as rows."""
    for line in problems:
        label, _, text = line.partition(': ')
        yield row('  ' * (label != 'Warning') + label, text)


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


def probe_lines(record: FitRecord) -> Iterator[str]:
    """Describe the accuracy of the linear probe."""
    probe = record.probe
    text = f'{_accuracy(probe)}, linear probe (took {probe["seconds"]:.0f} s)'
    yield row('Accuracy', text)
    if record.is_uneven and probe['accuracy'] is not None:
        text = f'macro recall {probe["macro_recall"]:.1%}'
        if record.call['class_weights'] is None:
            text += '; consider --class-weights balanced'
        yield row('', text)


def series_lines(record: FitRecord) -> Iterator[str]:
    """List classes with near-duplicates."""
    if record.series:
        number = sum(record.series.values())
        yield row(
            '  Copies',
            f'{number} near-duplicate photos of {first_of(record.series, 3)}: '
            'each series stays in one fold, and counts once in the interval',
        )


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
        f'{_share(x.probe["accuracy"])} on {len(x.classes)} classes'
        for x in (had, record)
    )
    added = f'{new["n"]} photos (before {number})'
    yield row('Classes', f'{len(had.classes)} -> {len(record.classes)}')
    yield row('Added', f'{name}: {added}, recall {recall}')
    yield row('Accuracy', f'{after} (before {before})')


def describe_accuracy(record: FitRecord) -> str:
    """Return the accuracy of a model with its interval."""
    best = record.best
    interval = _interval(best) if best['accuracy'] is not None else ''
    return f'{_share(best["accuracy"])} accuracy{interval}'


def describe_claim(record: FitRecord) -> str:
    """Return the accuracy of a model, and for which photos it holds."""
    valid, *_ = _valid(record).split(';')
    return f'{describe_accuracy(record)} on {valid}'


def result_lines(record: FitRecord) -> Iterator[str]:
    """Describe accuracy, measurement and threshold of the final model."""
    yield row('Result', describe_accuracy(record))
    yield row('Measured', _measured(record))
    yield row('Valid for', _valid(record))
    if record.final == 'trained' and record.best is record.probe:
        yield row('', 'with the linear probe, before fine-tuning')
    yield row('Unknown', _unknown(record.threshold))


def summary(record: FitRecord) -> str:
    """Describe the accuracy and its validity, in two lines."""
    return f'Accuracy: {_accuracy(record.best)}\nValid for: {_valid(record)}'


def saved_lines(folder: Path, exports: Sequence[Path]) -> Iterator[str]:
    """List written and removed files, and the next commands.

    ``exports`` are the exported files of the previous model.
    """
    place = shlex.quote(str(folder))
    program = f'{shlex.quote(os.path.basename(sys.executable))} -m mmclca'
    for file in (file for file in exports if not file.exists()):
        name = file.relative_to(folder).as_posix()
        kind = '--web' if '/' in name else '--int8' * ('.int8.' in name)
        again = f'{program} export {place} {kind}'.rstrip()
        yield row('Removed', f'outdated {name}; run: {again}')
    yield row('Saved', f'{folder}/ (model.pth, report.html, photographs.csv)')
    yield row('Next', f'open {place}/report.html in a browser')
    yield row('', f'{program} predict {place} NEW_PHOTOS --out results.csv')


def explain_lines(plan: Plan, record: FitRecord) -> Iterator[str]:
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
    yield '   (mean accuracy on nine datasets with 3 photos per class)'
    best, found = best_probe(plan)
    share = float(found.accuracy.mean()) if found.independent else None
    yield row(
        'Compared',
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
        return 'unknown: no class has two photos'
    return f'{found["accuracy"]:.1%}{_interval(found)}'


def _unknown(found: dict) -> str:
    """Describe the unknown-class threshold and its false-alarm rate."""
    if found['score'] != NEAREST:
        return 'not flagged: too few photos tested, or an older model'
    return (
        f'photos with similarity < {found["threshold"]:.3f} to every training '
        f'photo are flagged; expect {found["false_alarms"]:.1%} of photos of '
        f'known classes to be flagged by mistake{_interval(found)}; similar '
        'new classes are often not flagged'
    )


def _valid(record: FitRecord) -> str:
    """Describe the photos for which accuracy and interval hold."""
    if record.held_out:
        return 'new photos like those in val and test'
    if record.is_grouped:
        return 'photos of new groups, as named with --groups'
    return (
        'new photos of the same sessions only; to include other days, '
        'observers or places, name them with --groups'
    )


def _measured(record: FitRecord) -> str:
    found, probe = record.best, record.probe
    if found is not probe:
        kind = (
            'photos in val and test' if record.held_out else 'held-out photos'
        )
        return f'on {found["n"]} {kind}'
    if probe['accuracy'] is None:
        return 'not yet: add a second photo to each class'
    classes = probe['per_class'].values()
    number = sum(one['n'] for one in classes if one['recall'] is not None)
    return (
        f'on {number} photos, {probe["folds"]}-fold cross-validation '
        f'repeated {probe["repeats"]} times (each model of a fold trains on '
        f'{1 - 1 / probe["folds"]:.0%}, the saved model on all)'
    )
