# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The first step of a fit: a classifier on the network as it came."""

import time

import torch
from safetensors.torch import save
from torch import Tensor, nn

from mmclca.apis import Probe
from mmclca.apis.loading import config_and_weights
from mmclca.apis.probe import OutOfFold, learning_curve
from mmclca.datasets.photographs import Checked, Photographs
from mmclca.evaluation import open_set, wilson
from mmclca.utils.files import replace_bytes, replace_text, write_rows

from .job import Job
from .record import ModelFolder

CLASSIFIER = 'ridge'
SCORE, ACCEPT = 'max_softmax', 0.95
COLUMNS = (
    *('path', 'class', 'group', 'split', 'used', 'why_not'),
    *('predicted', 'p_given', 'p_predicted'),
)


def run_probe(job: Job) -> dict:
    """Fit the probe, estimate how good it is, and write it as the model.

    Of a model that was trained the classifier is fitted again instead. Gives
    ``probe``, ``learning_curve`` and ``threshold`` of the record.
    """
    began = time.perf_counter()
    draft, probe = job.folder.draft, probe_of(job)
    found, features = fit_classifier(job, probe, job.training)
    probe.save(draft.probe)
    threshold = _write_model(draft, probe, found)
    _write_evidence(draft, job.checked, found)
    curve = learning_curve(
        features,
        found.labels,
        len(job.classes),
        CLASSIFIER,
        groups=job.training.groups,
        strength=found.strength,
    )
    estimate = _estimate(found, job.classes)
    estimate['seconds'] = time.perf_counter() - began
    if job.record.final == 'trained':
        threshold = _fit_trained(job)
    return dict(probe=estimate, learning_curve=curve, threshold=threshold)


def probe_of(job: Job) -> Probe:
    """Build the network of a fit as it came; its features are cached."""
    return Probe(
        job.config,
        job.pretrained.source,
        device=job.device,
        features_dir=job.folder.features,
    )


def fit_classifier(
    job: Job, probe: Probe, photographs: Photographs
) -> tuple[OutOfFold, Tensor]:
    """Fit the last layer; gives the result of folds, and features (N, D)."""
    features, _ = probe.features(photographs.paths)
    found = probe.fit(
        features,
        torch.tensor(photographs.labels),
        job.classes,
        CLASSIFIER,
        groups=photographs.groups,
        folds=job.record.call['folds'],
        class_weights=job.record.call['class_weights'],
    )
    return found, features


def _fit_trained(job: Job) -> dict:
    """Fit the classifier of a network that was trained; its threshold."""
    config, weights = config_and_weights(job.folder.model, None)
    config.model.head.num_classes = len(job.classes)
    config.model.head.pop('loss', None)
    features = job.folder.features
    probe = Probe(config, weights, device=job.device, features_dir=features)
    found, _ = fit_classifier(job, probe, job.training)
    return _write_model(job.folder.draft, probe, found)


def _write_model(folder: ModelFolder, probe: Probe, found: OutOfFold) -> dict:
    """Write a probe as the model, with the threshold that it gives."""
    probe.save(folder.model)
    logits = found.logits.flatten(0, 1)
    tested = logits[~logits.isnan().any(1)]
    return set_threshold(folder, probe.model, tested)


def set_threshold(
    folder: ModelFolder, model: nn.Module, logits: Tensor
) -> dict:
    """Write below which score a photograph is of none of the classes.

    By class scores (N, K) of photographs that the model, or its like, has
    not seen. Without any the file is empty, and the values are None.
    """
    if not len(logits):
        replace_text(folder.threshold, '')
        return dict(score=None, threshold=None)
    scores = open_set.SCORES[SCORE](logits)
    value = open_set.fit_threshold(scores, ACCEPT)
    mark = open_set.fingerprint(model)
    threshold = open_set.Threshold(SCORE, value, mark)
    open_set.write_threshold(
        threshold, folder.threshold, accept=ACCEPT, images=len(logits)
    )
    return dict(score=SCORE, threshold=value)


def _estimate(found: OutOfFold, classes: list[str]) -> dict:
    """Estimate the accuracy of a probe, for the record."""
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
    )


def _per_class(found: OutOfFold, classes: list[str]) -> dict:
    """Count each class, with its recall and interval where it was tested."""
    counts = found.labels.bincount(minlength=len(classes)).tolist()
    rows = {}
    for name, n, recall in zip(classes, counts, found.recalls(), strict=True):
        tested = None if recall.isnan() else float(recall)
        low, high = (None, None) if tested is None else wilson(tested, n)
        rows[name] = dict(n=n, recall=tested, low=low, high=high)
    return rows


def _write_evidence(
    folder: ModelFolder, checked: Checked, found: OutOfFold
) -> None:
    """Write evidence.safetensors, and photographs.csv in the same order."""
    probabilities = found.probabilities().float().contiguous()
    tensors = dict(probabilities=probabilities, labels=found.labels)
    replace_bytes(folder.evidence, save(tensors))
    write_rows(folder.table, table_of(checked, probabilities))


def table_of(checked: Checked, probabilities: Tensor) -> list[list]:
    """List the rows of photographs.csv, first those that were learned from.

    Of these there are probabilities (N, K), NaN where one was not tested.
    """
    photographs = checked.photographs
    learned = photographs.to_train()
    tested = dict(zip(learned, probabilities, strict=True))
    held_out = [i for i in range(len(photographs)) if i not in tested]
    same = checked.doubled + checked.leaks
    reasons = photographs.left_out | checked.unread
    reasons |= {path: f'same as {kept}' for path, kept in same}
    for paths in checked.conflicts:
        reasons |= dict.fromkeys(paths, 'the same picture in two classes')
    rows = [_row(photographs, i, tested.get(i)) for i in learned + held_out]
    rows += [
        [x, '', '', '', False, why, '', '', ''] for x, why in reasons.items()
    ]
    return [COLUMNS, *rows]


def _row(photographs: Photographs, i: int, found: Tensor | None) -> list:
    """Return a photograph, and its probabilities if it was learned from."""
    label, split = photographs.labels[i], photographs.splits[i]
    group = photographs.groups[i] if photographs.groups else ''
    row = [photographs.paths[i], photographs.classes[label], group, split]
    if found is None:
        return [*row, False, f'held out in {split}', '', '', '']
    if found.isnan().any():
        return [*row, True, '', '', '', '']
    best = int(found.argmax())
    shares = (f'{float(found[i]):.6f}' for i in (label, best))
    return [*row, True, '', photographs.classes[best], *shares]
