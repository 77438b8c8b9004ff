# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second step of a fit: the network trained on, where that pays."""

import json
import time
from pathlib import Path

import torch

from mmclca.apis.probe.folds import fit_temperature
from mmclca.datasets.photographs import Photographs
from mmclca.utils.atomic_write import replace_text

from .candidates import ACCURACY
from .estimate import WORTH, errors_removed, hold_out, is_enough, step_seconds
from .job import Job
from .outcome import finish, measure
from .probing import fitted, probe_of
from .recipe import EPOCHS, num_steps
from .training import config_of, train


def improve(job: Job) -> None:
    """Train where that pays, and choose the better model.

    Args:
        job (Job): The fit; its facts get ``training``, ``final`` and, of
            what was trained, ``threshold``.
    """
    gain = _gain_worth_it(job)
    if gain is None:
        return
    began = time.perf_counter()
    amp = _announce(job, gain)
    outcome = _train_without_some(job, amp)
    better = _is_better(outcome['holdout'])
    if better:
        _train_on_all(job, amp, outcome)
        job.facts.update(final='trained', held_out=None)
    job.facts['training'] = dict(
        epochs=EPOCHS,
        seconds=time.perf_counter() - began,
        reason=f'expected to remove {gain:.0%} of the errors',
        holdout=outcome['holdout'],
    )
    job.publish()


def _gain_worth_it(job: Job) -> float | None:
    """Share of the errors that training may remove, None: too few."""
    accuracy = job.facts['probe']['accuracy']
    if accuracy is None:
        job.tell('Training is left out: nothing would tell whether it helps')
        return None
    if job.variant not in ACCURACY:
        kind = job.pretrained.kind
        job.tell(f'Training is left out: with {kind} it was not measured')
        return None
    gain = errors_removed(accuracy, job.variant.keep_rate)
    if gain >= WORTH:
        return gain
    removed = f'{max(gain, 0):.0%} of the errors'
    job.tell(f'Training is left out: on like sets it removed {removed}')
    return None


def _announce(job: Job, gain: float) -> str | None:
    """Say what is to be expected, and for how long to wait.

    Returns:
        str | None: The quicker number format.
    """
    photographs = job.training
    numbers = len(hold_out(photographs)[0]), len(photographs.paths)
    config = config_of(
        job, photographs, job.folder.probe, job.folder.training / 'all'
    )
    seconds, amp = step_seconds(config, job.device)
    seconds *= sum(map(num_steps, numbers))
    job.tell(
        f'Training: about {duration(seconds)}; on like sets it removed '
        f'{gain:.0%} of the errors. Ctrl-C keeps the model of now'
    )
    return amp


def _train_without_some(job: Job, amp: str | None) -> dict:
    """What photographs that a model was trained without tell of it.

    Returns:
        dict: Its ``temperature``; its class scores of these, ``logits``,
        divided by that; ``holdout``, how good it is, None where photographs
        are too few to tell.
    """
    note = job.folder.training / 'hold_out.json'
    if not note.is_file():  # of an earlier run
        replace_text(note, json.dumps(_held_out_outcome(job, amp)))
    return json.loads(note.read_text())


def _held_out_outcome(job: Job, amp: str | None) -> dict:
    photographs = job.training
    rest, held_out = map(photographs.select, hold_out(photographs))
    work_dir = job.folder.training / 'hold_out'
    start = _start(job, rest, work_dir / 'start.pth')
    config = config_of(job, rest, start, work_dir)
    path = train(job, config, amp, 'Training to see how good it gets')
    trained, logits = measure(path, held_out, job.device)
    probe, _ = measure(start, held_out, job.device)
    labels = torch.tensor(held_out.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    known = dict(trained, probe_accuracy=probe['accuracy'])
    return dict(
        temperature=temperature,
        logits=(logits / temperature).tolist(),
        holdout=known if is_enough(photographs) else None,
    )


def _start(job: Job, photographs: Photographs, path: Path) -> Path:
    """The probe of some photographs."""
    probe = probe_of(job)
    fitted(job, probe, photographs)
    probe.save(path)
    return path


def _is_better(holdout: dict | None) -> bool:
    return holdout is None or holdout['accuracy'] >= holdout['probe_accuracy']


def _train_on_all(job: Job, amp: str | None, outcome: dict) -> None:
    work_dir = job.folder.training / 'all'
    config = config_of(job, job.training, job.folder.probe, work_dir)
    path = train(job, config, amp, 'Training')
    finish(job, path, outcome['temperature'], torch.tensor(outcome['logits']))


def duration(seconds: float) -> str:
    """A time in words: '40 s', '3 min'."""
    if seconds < 90:
        return f'{seconds:.0f} s'
    return f'{seconds / 60:.0f} min'
