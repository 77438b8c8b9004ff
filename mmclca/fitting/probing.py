# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The first step of a fit: a classifier on the network as it came."""

import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from mmclca.apis import Probe, TokenReductionInferencer
from mmclca.apis.features import extract_logits
from mmclca.apis.loading import config_and_weights
from mmclca.apis.probe import OutOfFold, learning_curve
from mmclca.datasets.photographs import Checked, Photographs
from mmclca.evaluation import accuracy, open_set, wilson
from mmclca.utils.files import replace_bytes, replace_text, write_rows

from .model import Plan
from .record import ModelFolder

CLASSIFIER = 'ridge'
SCORE, ACCEPT = 'max_softmax', 0.95
COLUMNS = (
    *('path', 'class', 'group', 'split', 'used', 'why_not'),
    *('predicted', 'p_given', 'p_predicted'),
)


def run_probe(plan: Plan, files: ModelFolder, is_trained: bool) -> dict:
    """Fit the probe, estimate how good it is, and write it as the model.

    Of a model that was trained the classifier is fitted again instead. Gives
    ``probe``, ``learning_curve`` and ``threshold`` of the record.
    """
    began = time.perf_counter()
    probe = probe_of(plan, files)
    found, features = fit_classifier(plan, probe, plan.training)
    probe.save(files.draft.probe)
    _write_evidence(files.draft, plan.checked, found)
    curve = learning_curve(
        features,
        found.labels,
        len(plan.classes),
        CLASSIFIER,
        groups=plan.training.groups,
        strength=found.strength,
    )
    estimate = _estimate(found, plan.classes)
    estimate['seconds'] = time.perf_counter() - began
    fitted = probe, found
    if is_trained:
        fitted = _fit_trained(plan, files)
    threshold = _write_model(files.draft, *fitted)
    return dict(probe=estimate, learning_curve=curve, threshold=threshold)


def probe_of(plan: Plan, files: ModelFolder) -> Probe:
    """Build the network of a fit as it came; its features are cached."""
    source, cache = plan.pretrained.source, files.features
    return Probe(plan.config, source, plan.device, features_dir=cache)


def fit_classifier(
    plan: Plan, probe: Probe, photographs: Photographs
) -> tuple[OutOfFold, Tensor]:
    """Fit the last layer; gives the result of folds, and features (N, D)."""
    features, _ = probe.features(photographs.paths)
    found = probe.fit(
        features,
        torch.tensor(photographs.labels),
        plan.classes,
        CLASSIFIER,
        groups=photographs.groups,
        folds=plan.call['folds'],
        class_weights=plan.call['class_weights'],
    )
    return found, features


def _fit_trained(plan: Plan, files: ModelFolder) -> tuple[Probe, OutOfFold]:
    """Fit the classifier of a network that was trained."""
    config, weights = config_and_weights(files.model, None)
    config.model.head.num_classes = len(plan.classes)
    config.model.head.pop('loss', None)
    cache = files.features
    probe = Probe(config, weights, plan.device, features_dir=cache)
    return probe, fit_classifier(plan, probe, plan.training)[0]


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
    value = open_set.fit_threshold(open_set.SCORES[SCORE](logits), ACCEPT)
    found = open_set.Threshold(SCORE, value, open_set.fingerprint(model))
    more = dict(accept=ACCEPT, images=len(logits))
    open_set.write_threshold(found, folder.threshold, **more)
    return dict(score=SCORE, threshold=value)


def measure(
    checkpoint: Path, photographs: Photographs, device: str
) -> tuple[dict, Tensor]:
    """Measure a model on photographs that it has not seen.

    Gives ``n``, ``accuracy`` and its 95 % interval, ``low`` to ``high``; and
    the class scores (N, K).
    """
    inferencer = TokenReductionInferencer(checkpoint, device=device)
    logits, _ = extract_logits(inferencer, photographs.paths)
    labels = torch.tensor(photographs.labels)
    right = float(accuracy(logits, labels))
    low, high = wilson(right, len(labels))
    return dict(n=len(labels), accuracy=right, low=low, high=high), logits


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
        per_class=dict(_per_class(found, classes)),
    )


def _per_class(found: OutOfFold, classes: list[str]) -> Iterator[tuple]:
    """Count each class, with its recall and interval where it was tested."""
    counts = found.labels.bincount(minlength=len(classes)).tolist()
    for name, n, recall in zip(classes, counts, found.recalls(), strict=True):
        share = low = high = None
        if not recall.isnan():
            share = float(recall)
            low, high = wilson(share, n)
        yield name, dict(n=n, recall=share, low=low, high=high)


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
    empty = [''] * 3
    rows += [[x, *empty, False, why, *empty] for x, why in reasons.items()]
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
