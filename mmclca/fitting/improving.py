# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The second step of a fit: the network trained on, where that pays."""

import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from mmengine.config import Config
from torch import Tensor

from mmclca.apis import TokenReductionInferencer
from mmclca.apis.features import extract_logits
from mmclca.apis.loading import load_classifier, save_classifier
from mmclca.apis.probe.folds import fit_temperature
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.units import Units
from mmclca.evaluation import accuracy, wilson
from mmclca.models.heads import last_linear, set_last_linear

from .job import Job
from .model import ACCURACY
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
PARTS = 5
# fewer are no ground for an accuracy
LEAST, LEAST_A_CLASS = 200, 8


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
    held_out, temperature, logits = _train_without_some(job, amp)
    holdout, better = None, {}
    if is_enough(job.training):
        holdout = held_out
    if holdout is None or holdout['accuracy'] >= holdout['probe_accuracy']:
        trained = train(job, config, amp, 'Training')
        threshold = _finish(job, trained, temperature, logits)
        better = dict(final='trained', held_out=None, threshold=threshold)
    training = dict(
        epochs=config.train_cfg.max_epochs,
        seconds=time.perf_counter() - began,
        reason=f'expected to remove {gain:.0%} of the errors',
        holdout=holdout,
    )
    return dict(training=training, **better)


def _gain_worth_it(job: Job) -> float | None:
    """Estimate the share of the errors that training removes, if enough."""
    accuracy = job.record.probe['accuracy']
    if accuracy is None:
        why = 'nothing would tell whether it helps'
    elif job.variant not in ACCURACY:
        why = f'with {job.pretrained.kind} it was not measured'
    else:
        gain = errors_removed(accuracy, job.variant.keep_rate)
        if gain >= WORTH:
            return gain
        why = f'on like sets it removed {max(gain, 0):.0%} of the errors'
    job.tell(f'Training is left out: {why}')
    return None


def errors_removed(accuracy: float, keep_rate: float) -> float:
    """Return the share of the probe's errors that training is expected to
    remove.

    Between the sets that were measured at the nearest keep rates, by the
    accuracy of the probe on photographs that it has not seen.
    """
    rates = sorted({rate for rate, _, _ in MEASURED})
    removed = []
    for rate in rates:
        known = sorted(row[1:] for row in MEASURED if row[0] == rate)
        probe, trained = np.array(known).T
        share = (trained - probe) / (1 - probe)
        removed.append(np.interp(accuracy, probe, share))
    return float(np.interp(keep_rate, rates, removed))


def _announce(job: Job, config: Config, gain: float) -> str | None:
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


def hold_out(photographs: Photographs) -> tuple[list[int], list[int]]:
    """Choose positions to train on, and a fifth or a little more to hold out.

    Stratified, with groups kept together. Classes of one photograph, or one
    group, are all trained on.
    """
    units = Units(photographs.labels, photographs.groups)
    train, test = next(iter(units.folds(PARTS, seed=0)))
    return train.tolist(), test.tolist()


def is_enough(photographs: Photographs) -> bool:
    """Tell whether those held out show how good a trained model is."""
    counts = photographs.counts().values()
    return sum(counts) >= LEAST and median(counts) >= LEAST_A_CLASS


def _train_without_some(
    job: Job, amp: str | None
) -> tuple[dict, float, Tensor]:
    """Train without some photographs, on which that is measured.

    Gives :func:`measure` of them with ``probe_accuracy``, the temperature of
    the trained model, and its class scores (N, K) divided by that.
    """
    rest, held_out = map(job.training.select, hold_out(job.training))
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
    found = dict(trained, probe_accuracy=before['accuracy'])
    return found, temperature, logits / temperature


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


def _finish(job: Job, path: Path, temperature: float, logits: Tensor) -> dict:
    """Write a trained model, calibrated; gives its threshold."""
    model = load_classifier(path, device=job.device)
    layer = last_linear(model.head)
    weight, bias = layer.weight / temperature, layer.bias / temperature
    set_last_linear(model.head, weight.flatten(1), bias)
    save_classifier(model, job.folder.draft.model, job.classes)
    return set_threshold(job.folder.draft, model, logits)
