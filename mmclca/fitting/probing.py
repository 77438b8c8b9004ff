# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The first step of a fit: a classifier on the network as it came."""

import time

import torch
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.probe import OutOfFold, learning_curve
from mmclca.datasets.photographs import Photographs
from mmclca.evaluation import wilson

from .evidence import write_evidence, write_table
from .job import Job
from .outcome import set_threshold

CLASSIFIER = 'ridge'


def run_probe(job: Job) -> None:
    """Fit the probe, estimate how good it is, and write it.

    Args:
        job (Job): The fit; its facts get ``probe``, ``learning_curve`` and
            ``threshold``.
    """
    began = time.perf_counter()
    probe, training = probe_of(job), job.training
    features, found = fit_probe(job, probe)
    probe.save(job.folder.draft.probe)
    write_evidence(job.folder.draft, found.labels, found.probabilities())
    write_table(job.folder.draft, job.checked, found.probabilities())
    job.facts['learning_curve'] = learning_curve(
        features,
        found.labels,
        len(job.classes),
        CLASSIFIER,
        groups=training.groups,
        strength=found.strength,
    )
    seconds = time.perf_counter() - began
    job.facts['probe'] = facts_of(found, job.classes, seconds)


def fit_probe(job: Job, probe: Probe) -> tuple[Tensor, OutOfFold]:
    """Fit a classifier to all photographs, and write it as the model.

    Args:
        job (Job): The fit; its facts get ``threshold``.
        probe (Probe): The network.

    Returns:
        tuple[Tensor, OutOfFold]: Features (N, D), and what folds gave.
    """
    found, features = fitted(job, probe, job.training)
    probe.save(job.folder.draft.model)
    logits = found.logits.flatten(0, 1)
    tested = logits[~logits.isnan().any(1)]
    job.facts['threshold'] = set_threshold(
        job.folder.draft, probe.model, tested
    )
    return features, found


def fitted(
    job: Job, probe: Probe, photographs: Photographs
) -> tuple[OutOfFold, Tensor]:
    """Fit a classifier to photographs, whose features are cached.

    Args:
        job (Job): The fit.
        probe (Probe): The network.
        photographs (Photographs): Those to learn from.
    """
    features, _ = probe.features(photographs.paths)
    call = job.facts['call']
    found = probe.fit(
        features,
        torch.tensor(photographs.labels),
        job.classes,
        CLASSIFIER,
        groups=photographs.groups,
        folds=call['folds'],
        class_weights=call['class_weights'],
    )
    return found, features


def probe_of(job: Job) -> Probe:
    """The probe of a fit, whose features are cached."""
    return Probe(
        job.config,
        job.pretrained.source,
        device=job.device,
        features_dir=job.folder.features,
    )


def facts_of(found: OutOfFold, classes: list[str], seconds: float) -> dict:
    """What fit.json says of a probe.

    Args:
        found (OutOfFold): What its folds gave.
        classes (list[str]): Names of the classes.
        seconds (float): How long it took.
    """
    tested = bool(found.independent)
    low, high = found.interval() if tested else (None, None)
    return dict(
        classifier=CLASSIFIER,
        strength=found.strength,
        temperature=found.temperature,
        folds=found.folds,
        repeats=len(found.logits),
        accuracy=float(found.accuracy.mean()) if tested else None,
        low=low,
        high=high,
        macro_recall=found.macro_recall if tested else None,
        per_class=_per_class(found, classes),
        seconds=seconds,
    )


def _per_class(found: OutOfFold, classes: list[str]) -> dict:
    """Recall of each class that was tested, with its interval."""
    recalls = found.recalls().tolist()
    counts = found.labels.bincount(minlength=len(classes)).tolist()
    rows = {}
    for i, name in enumerate(classes):
        known = i not in found.untested
        low, high = wilson(recalls[i], counts[i]) if known else (None, None)
        recall = recalls[i] if known else None
        rows[name] = dict(n=counts[i], recall=recall, low=low, high=high)
    return rows
