# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second step of a fit: the network trained on, where that pays."""

import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_logits
from mmclca.apis.loading import load_classifier, save_classifier
from mmclca.apis.probe.folds import fit_temperature
from mmclca.datasets.photographs import Photographs
from mmclca.evaluation import accuracy, wilson
from mmclca.models.heads import last_linear, set_last_linear
from mmclca.utils.atomic_write import replace_text

from .candidates import ACCURACY
from .hold_out import hold_out, is_enough
from .job import Job
from .probing import fit_classifier, probe_of, set_threshold
from .training import num_steps, step_seconds, train, training_config

# of the errors of the probe that training must be expected to remove
WORTH = 0.05
# keep rate, accuracy of the probe on test images, and of what was trained on
# from it. DeiT-Tiny, three images a class: leaf40_white, five draws; 38
# diseases of leaves, by a probe of layers 2, 5, 8 and 11; 24 drawn cultivars
# (synthetic_leaves.py with --classes 24 --difference 0.6 --seed 3), the last
# two with one draw
MEASURED = (
    (0.1, 0.875, 0.922),
    (0.25, 0.948, 0.945),
    (0.5, 0.968, 0.950),
    (0.1, 0.57, 0.686),
    (0.5, 0.72, 0.773),
    (0.25, 0.326, 0.601),
    (0.5, 0.451, 0.604),
)


def improve(job: Job) -> dict:
    """Train where that pays, and choose the better model.

    Gives ``training`` of the record and, if what was trained is better,
    ``final``, ``held_out`` and ``threshold``.
    """
    gain = _gain_worth_it(job)
    if gain is None:
        return {}
    began = time.perf_counter()
    path = job.folder.training / 'all'
    config = training_config(job, job.training, job.folder.probe, path)
    amp = _announce(job, config, gain)
    outcome = _train_without_some(job, amp)
    holdout, better = outcome['holdout'], {}
    if holdout is None or holdout['accuracy'] >= holdout['probe_accuracy']:
        trained = train(job, config, amp, 'Training')
        threshold = _finish(job, trained, outcome)
        better = dict(final='trained', held_out=None, threshold=threshold)
    training = dict(
        epochs=config.train_cfg.max_epochs,
        seconds=time.perf_counter() - began,
        reason=f'expected to remove {gain:.0%} of the errors',
        holdout=holdout,
    )
    return dict(training=training, **better)


def _gain_worth_it(job: Job) -> float | None:
    """Share of the errors that training may remove, None: too few."""
    accuracy = job.record.probe['accuracy']
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


def errors_removed(accuracy: float, keep_rate: float) -> float:
    """Share of the probe's errors that training is expected to remove.

    Between the sets that were measured at the nearest keep rates, by the
    accuracy of the probe on photographs that it has not seen.
    """
    rates = sorted({rate for rate, _, _ in MEASURED})
    by_rate = [_at(accuracy, rate) for rate in rates]
    return float(np.interp(keep_rate, rates, by_rate))


def _at(accuracy: float, keep_rate: float) -> float:
    known = sorted(row[1:] for row in MEASURED if row[0] == keep_rate)
    probe, trained = np.array(known).T
    return float(np.interp(accuracy, probe, (trained - probe) / (1 - probe)))


def _announce(job: Job, config, gain: float) -> str | None:
    """Say what to expect, and how long to wait; the quicker format."""
    photographs = job.training
    numbers = len(hold_out(photographs)[0]), len(photographs)
    seconds, amp = step_seconds(config, job.device)
    seconds *= sum(num_steps(config, number) for number in numbers)
    minutes = f'{seconds / 60:.0f} min'
    job.tell(
        f'Training: about {f"{seconds:.0f} s" if seconds < 90 else minutes}; '
        f'on like sets it removed {gain:.0%} of the errors. Ctrl-C keeps the '
        'model of now'
    )
    return amp


def _train_without_some(job: Job, amp: str | None) -> dict:
    """What photographs that a model was trained without tell of it.

    Its ``temperature``; its class scores of these, ``logits``, divided by
    that; ``holdout``, how good it is, None where photographs are too few to
    tell.
    """
    note = job.folder.training / 'hold_out.json'
    if not note.is_file():  # of an earlier run
        replace_text(note, json.dumps(_held_out_outcome(job, amp)))
    return json.loads(note.read_text())


def _held_out_outcome(job: Job, amp: str | None) -> dict:
    photographs = job.training
    rest, held_out = map(photographs.select, hold_out(photographs))
    work_dir = job.folder.training / 'hold_out'
    start, probe = work_dir / 'start.pth', probe_of(job)
    fit_classifier(job, probe, rest)
    probe.save(start)
    config = training_config(job, rest, start, work_dir)
    path = train(job, config, amp, 'Training to see how good it gets')
    trained, logits = measure(path, held_out, job.device)
    before, _ = measure(start, held_out, job.device)
    labels = torch.tensor(held_out.labels)
    temperature = fit_temperature(logits, labels, len(labels))
    known = dict(trained, probe_accuracy=before['accuracy'])
    return dict(
        temperature=temperature,
        logits=(logits / temperature).tolist(),
        holdout=known if is_enough(photographs) else None,
    )


def measure(
    checkpoint: Path, photographs: Photographs, device: str
) -> tuple[dict, Tensor]:
    """Accuracy of a model on photographs that it has not seen.

    Gives ``n``, ``accuracy`` and its 95 % interval, ``low`` to ``high``; and
    the class scores (N, K).
    """
    inferencer = TokenReductionInferencer(checkpoint, device=device)
    logits, _ = extract_logits(inferencer, photographs.paths)
    labels = torch.tensor(photographs.labels)
    right = float(accuracy(logits, labels))
    low, high = wilson(right, len(labels))
    return dict(n=len(labels), accuracy=right, low=low, high=high), logits


def _finish(job: Job, path: Path, outcome: dict) -> dict:
    """Write a trained model, calibrated; gives its threshold."""
    model = load_classifier(path, device=job.device)
    temperature = outcome['temperature']
    layer = last_linear(model.head)
    weight, bias = layer.weight / temperature, layer.bias / temperature
    set_last_linear(model.head, weight.flatten(1), bias)
    save_classifier(model, job.folder.draft.model, job.classes)
    logits = torch.tensor(outcome['logits'])
    return set_threshold(job.folder.draft, model, logits)
