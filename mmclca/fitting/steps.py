# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The steps of a fit, one after the other, and the lines that they say."""

import os
import shlex
import sys
import time

from .improving import improve, measure
from .job import Job
from .model import cost_of, plain_model, words
from .probing import run_probe
from .record import FitRecord
from .report import write_report


def do_steps(job: Job, probe_only: bool) -> None:
    """Do the steps of a fit that were not done yet."""
    began, before = time.perf_counter(), job.record.seconds
    _say_start(job)
    if job.record.cost is None:
        job.add(cost=_cost(job))
    _say_cost(job)
    if job.record.probe is None:
        job.add(**run_probe(job))
    say_accuracy(job)
    # what training writes is no part of this draft
    job.publish(final=job.record.final or 'probe')
    if not probe_only and job.record.training is None:
        job.publish(**improve(job))
    if job.held_out.paths and job.record.held_out is None:
        found, _ = measure(job.folder.model, job.held_out, job.device)
        job.add(held_out=found)
    job.publish(seconds=before + time.perf_counter() - began)
    write_report(job.folder.path)
    if job.record.training:
        for checkpoint in job.folder.training.glob('*/*.pth'):
            checkpoint.unlink()  # what it takes to go on, thrice a model
    say_end(job)


def _cost(job: Job) -> dict:
    full = job.config.model
    if job.variant.out_type:
        size, number = job.variant.img_size, len(job.classes)
        full = plain_model(job.pretrained, size, number)
    return cost_of(job.config.model, full, job.device)


def _say_start(job: Job) -> None:
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


def _say_cost(job: Job) -> None:
    """Say what the model costs."""
    cost, full = job.record.cost, ''
    if job.variant.out_type:
        full = (
            f' (the whole transformer: {cost["gmacs_full"]:.3g} and '
            f'{cost["ms_full"]:.0f})'
        )
    job.tell(
        f'Model: {words(job.variant)}, {cost["gmacs"]:.3g} GMACs and '
        f'{cost["ms"]:.0f} ms a photograph{full}'
    )


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
        text += (
            '; the trained model is likely better, but by how much so few '
            'photographs cannot tell'
        )
    return text
