# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The lines that a fit says."""

import os
import shlex
import sys

from .candidates import words
from .job import Job
from .record import FitRecord


def say_start(job: Job) -> None:
    """Say what is fitted to what."""
    counts = job.record.counts.values()
    low, high = min(counts), max(counts)
    job.tell(
        f'{sum(counts)} photographs of {len(counts)} classes '
        f'({low if low == high else f"{low} to {high}"} a class)'
    )
    for line in job.record.problems:
        job.tell(f'  {line}')
    job.tell(f'Weights: {job.pretrained.words()}')
    if job.pretrained.note:
        job.tell(f'  {job.pretrained.note}')


def say_cost(job: Job) -> None:
    """Say what the model costs."""
    cost = job.record.cost
    line = (
        f'Model: {words(job.variant)}, {cost["gmacs"]:.3g} GMACs and '
        f'{cost["ms"]:.0f} ms a photograph'
    )
    if job.variant.out_type:
        line += (
            f' (the whole transformer: {cost["gmacs_full"]:.3g} and '
            f'{cost["ms_full"]:.0f})'
        )
    job.tell(line)


def say_accuracy(job: Job) -> None:
    """Say how good the probe is."""
    probe, call = job.record.probe, job.record.call
    seconds = f'after {probe["seconds"]:.0f} s'
    job.tell(f'Without training, {seconds}: {_accuracy(probe)}')
    if job.record.is_uneven and probe['accuracy'] is not None:
        line = f'  mean over classes: {probe["macro_recall"]:.1%}'
        if call['class_weights'] is None:
            line += '; --class-weights balanced lets classes count alike'
        job.tell(line)


def say_end(job: Job) -> None:
    """Say how good the model is, how sure that is, and what to type next."""
    folder = shlex.quote(str(job.folder.path))
    program = shlex.quote(os.path.basename(sys.executable))
    job.tell(f'How good: {_accuracy(job.record.best)}')
    job.tell(f'How sure: {_how_sure(job.record)}')
    job.tell(
        f'What next: {program} -m mmclca predict {folder} NEW_PHOTOGRAPHS; '
        f'open {folder}/report.html'
    )


def _accuracy(found: dict) -> str:
    if found['accuracy'] is None:
        return 'accuracy not known, as no class has two photographs'
    return (
        f'{found["accuracy"]:.1%} right on photographs that it has not seen '
        f'({found["low"]:.1%} to {found["high"]:.1%})'
    )


def _how_sure(record: FitRecord) -> str:
    found, probe = record.best, record.probe
    if found is not probe:
        where = 'in val and test' if record.held_out else 'held out'
        return (
            f'measured on {found["n"]} photographs {where}; 95 of 100 such '
            'intervals hold the truth'
        )
    if probe['accuracy'] is None:
        return 'give every class a second photograph, and it can be measured'
    classes = probe['per_class'].values()
    number = sum(one['n'] for one in classes if one['recall'] is not None)
    text = (
        f'{number} photographs, each named by models that had not seen it '
        f'({probe["folds"]} folds, {probe["repeats"]} times), which learned '
        f'from {1 - 1 / probe["folds"]:.0%} of them; this one from all'
    )
    if record.final == 'trained':
        text += '; the trained model is likely better, but by how much so few '
        text += 'photographs cannot tell'
    return text
