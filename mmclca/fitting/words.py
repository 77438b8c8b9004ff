# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The lines that a fit says."""

import os
import shlex
import sys

from .candidates import words
from .job import Job

UNEVEN = 10  # times as many photographs in the largest class


def opening(job: Job) -> None:
    """Say what is fitted to what.

    Args:
        job (Job): The fit.
    """
    counts = job.facts['counts'].values()
    job.tell(
        f'{sum(counts)} photographs of {len(counts)} classes '
        f'({_from_to(counts)} a class)'
    )
    for line in job.facts['problems']:
        job.tell(f'  {line}')
    job.tell(f'Weights: {job.pretrained.words()}')
    if job.pretrained.note:
        job.tell(f'  {job.pretrained.note}')


def _from_to(counts) -> str:
    low, high = min(counts), max(counts)
    return f'{low}' if low == high else f'{low} to {high}'


def cost_line(job: Job) -> None:
    """Say what the model costs.

    Args:
        job (Job): The fit.
    """
    cost = job.facts['cost']
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


def probe_line(job: Job) -> None:
    """Say how good the probe is.

    Args:
        job (Job): The fit.
    """
    probe = job.facts['probe']
    seconds = f'after {probe["seconds"]:.0f} s'
    job.tell(f'Without training, {seconds}: {_accuracy(probe)}')
    counts = job.facts['counts'].values()
    uneven = max(counts) >= UNEVEN * min(counts)
    if uneven and probe['accuracy'] is not None:
        advice = '; --class-weights balanced lets classes count alike'
        balanced = job.facts['call']['class_weights'] is not None
        job.tell(
            f'  mean over classes: {probe["macro_recall"]:.1%}'
            f'{"" if balanced else advice}'
        )


def _accuracy(found: dict) -> str:
    if found['accuracy'] is None:
        return 'accuracy not known, as no class has two photographs'
    return (
        f'{found["accuracy"]:.1%} right on photographs that it has not seen '
        f'({found["low"]:.1%} to {found["high"]:.1%})'
    )


def ending(job: Job) -> None:
    """Say how good the model is, how sure that is, and what to type next.

    Args:
        job (Job): The fit.
    """
    folder = shlex.quote(str(job.folder.path))
    program = shlex.quote(os.path.basename(sys.executable))
    job.tell(f'How good: {_accuracy(best_known(job.facts))}')
    job.tell(f'How sure: {_how_sure(job.facts)}')
    job.tell(
        f'What next: {program} -m mmclca predict {folder} NEW_PHOTOGRAPHS; '
        f'open {folder}/report.html'
    )


def best_known(facts: dict) -> dict:
    """What tells most of how good a model is: ``accuracy``, ``low``, ``high``.

    Photographs in val and test folders, else those that a trained model was
    measured on, else the folds of the probe.

    Args:
        facts (dict): Of fit.json.
    """
    training = facts['training'] or {}
    trained = facts['final'] == 'trained' and training.get('holdout')
    return facts['held_out'] or trained or facts['probe']


def _how_sure(facts: dict) -> str:
    found, probe = best_known(facts), facts['probe']
    number = sum(
        one['n']
        for one in probe['per_class'].values()
        if one['recall'] is not None
    )
    if found is not probe:
        where = 'held out' if facts['held_out'] is None else 'in val and test'
        return (
            f'measured on {found["n"]} photographs {where}; 95 of 100 such '
            'intervals hold the truth'
        )
    if probe['accuracy'] is None:
        return 'give every class a second photograph, and it can be measured'
    text = (
        f'{number} photographs, each named by models that had not seen it '
        f'({probe["folds"]} folds, {probe["repeats"]} times), which learned '
        f'from {1 - 1 / probe["folds"]:.0%} of them; this one from all'
    )
    if facts['final'] == 'trained':
        text += '; the trained model is likely better, but by how much so few '
        text += 'photographs cannot tell'
    return text
