# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First step of a fit: linear probe on the pretrained backbone."""

import time
import zlib
from collections import defaultdict
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.probe import OutOfFold, forecast, learning_curve
from mmclca.checkpoints import checksums
from mmclca.checkpoints.model_folder import HELD_OUT
from mmclca.datasets.photos import (
    LabeledImages,
    PhotoCheck,
    find_near_duplicates,
    join_groups,
)
from mmclca.evaluation import accuracy, open_set, wilson
from mmclca.models.heads import (
    drop_references,
    keep_references,
    nearest_of_others,
)
from mmclca.utils.files import replace_bytes, replace_text, write_rows
from mmclca.utils.messages import track

from .model import Plan, candidates_of, classifier_config
from .record import FitRecord

CLASSIFIER = 'ridge'
COLUMNS = (
    *('path', 'class', 'group', 'split', 'used', 'why_not'),
    *('predicted', 'p_given', 'p_predicted', 'digest', 'near_duplicates'),
)


def run_probe(plan: Plan, is_trained: bool) -> dict:
    """Fit the probe, estimate its accuracy, and write it as the model.

    If the model was fine-tuned before, its classifier is fitted again, and
    the fine-tuned backbone stays. Return ``table``, ``probe``,
    ``learning_curve``, ``threshold`` and ``test`` for the record.
    """
    began = time.perf_counter()
    files, known, probe = plan.files, plan.training, plan.probe
    found = fit_classifier(plan, probe, known, plan.views)
    probe.save(files.draft.probe)
    table = _write_cv_probabilities(plan, found)
    settings = plan.views, CLASSIFIER, known.groups
    more = dict(class_weights=plan.call['class_weights'])
    more['progress'] = partial(track, description='Learning curve')
    curve = learning_curve(found, *settings, **more)
    estimate = estimate_accuracy(found, curve, known.classes)
    estimate['seconds'] = time.perf_counter() - began
    views = plan.views
    if is_trained:
        probe = plan.probe_of(files.model, features=files.features)
        views, _ = probe.views(known.paths)
        found = fit_classifier(plan, probe, known, views)
    near = nearest_of_others(views[:, 0], found.splits)
    return dict(
        table=table,
        probe=estimate,
        learning_curve=curve,
        threshold=write_model(plan, probe, views[:, 0], near),
        test=measure_held_out(plan, probe),
    )


def join_near_duplicates(plan: Plan, record: FitRecord) -> FitRecord:
    """Keep near-duplicate photos in one group, and note them in a record.

    Groups are those of all pairs in the record. Pairs are searched once, in
    photos that may be opened.
    """
    checked, pairs = plan.checked, record.near_duplicates
    training, unopened = plan.training, checked.unopened
    new = [i for i, x in enumerate(training.paths) if x not in unopened]
    if new and (pairs is None or unopened):
        opened, features = training.select(new), plan.views[new, 0]
        pairs = [*(pairs or ()), *find_near_duplicates(opened, features)]
    checked.near_duplicates = [(a, b) for a, b in pairs or ()]
    if pairs:
        photos = checked.photos
        groups = join_groups(photos, checked.near_duplicates)
        checked.photos = replace(photos, groups=groups)
    return replace(
        record,
        near_duplicates=checked.near_duplicates,
        near_duplicate_counts=checked.near_duplicate_counts,
        problems=checked.list_problems(),
    )


def fit_classifier(
    plan: Plan, probe: Probe, some: LabeledImages, views: Tensor
) -> OutOfFold:
    """Fit the last layer to features (N, V, D), and cross-validate."""
    settings = {name: plan.call[name] for name in ('folds', 'class_weights')}
    settings['progress'] = partial(track, description='Cross-validation')
    given = views, some.labels, some.classes, CLASSIFIER
    return probe.fit(*given, groups=some.groups, **settings)


def describe_coarse(plan: Plan, coarse_of: dict[str, str]) -> str:
    """Describe the accuracy on coarse classes and within them."""
    found = fit_classifier(plan, plan.probe, plan.training, plan.views)
    right, inside = found.level_accuracies(plan.training.classes, coarse_of)
    return (
        f'Coarse     {right:.1%} accuracy on coarse classes; {inside:.1%} on '
        'fine classes, given the coarse class'
    )


def best_probe(plan: Plan) -> tuple[Plan, OutOfFold]:
    """Cross-validate a probe on the most accurate candidate."""
    variant, *_ = candidates_of(plan.pretrained)
    number = len(plan.training.classes)
    config = classifier_config(plan.pretrained, variant, number)
    best = replace(plan, variant=variant, config=config)
    return best, fit_classifier(best, best.probe, best.training, best.views)


def write_model(
    plan: Plan, probe: Probe, features: Tensor, near: Tensor
) -> dict:
    """Write a probe as the model, with its unknown-class threshold.

    The model stores the features (N, D) of the training photos. New photos
    whose similarity to every feature is below the threshold are flagged as
    unknown. It is set on cross-validated similarities ``near`` (S, N), NaN
    for photos not tested in a split. Return ``threshold`` for the record; too
    few photos give none, and an empty threshold file.
    """
    draft, known = plan.files.draft, plan.training
    keep_references(probe.model, features)
    probe.save(draft.model)
    found = open_set.threshold_by_folds(near, known.groups, plan.call['folds'])
    facts = dict(score=None, threshold=None)
    if found:
        facts = dict(score=open_set.NEAREST, **found)
        open_set.write_threshold(draft.threshold, probe.model, **facts)
    else:
        replace_text(draft.threshold, '')
    drop_references(probe.model)
    return facts


def measure(probe: Probe, photos: LabeledImages) -> tuple[dict, Tensor]:
    """Measure a model on new photos.

    Return ``n``, ``accuracy`` and its 95% interval, ``low`` to ``high``;
    and the class scores (N, K).
    """
    features, _ = probe.features(photos.paths)
    logits = probe.scores(features)
    labels = torch.tensor(photos.labels)
    right = float(accuracy(logits, labels))
    low, high = wilson(right, len(labels))
    return dict(n=len(labels), accuracy=right, low=low, high=high), logits


def measure_held_out(plan: Plan, probe: Probe) -> dict | None:
    """Measure a model on val and test photos; None without any."""
    return measure(probe, plan.held_out)[0] if len(plan.held_out) else None


def estimate_accuracy(found: OutOfFold, curve: list, classes: list) -> dict:
    """Return ``probe`` of the record: accuracy, recalls, hyperparameters."""
    tested = bool(found.independent)
    low, high = interval_of(found, curve) if tested else (None, None)
    numbers = found.labels.bincount(minlength=len(classes)).tolist()
    rows = map(_recall, found.recalls(), numbers)
    return dict(
        classifier=CLASSIFIER,
        **found.setting._asdict(),
        temperature=found.temperature,
        folds=found.folds,
        repeats=len(found.logits),
        accuracy=float(found.accuracy.mean()) if tested else None,
        low=low,
        high=high,
        macro_recall=found.macro_recall if tested else None,
        per_class=dict(zip(classes, rows, strict=True)),
    )


def interval_of(found: OutOfFold, curve: list[dict]) -> tuple[float, float]:
    """Estimate the 95% interval of a probe fitted to all photos.

    Each fold is fitted to fewer photos, so the upper bound adds the gain
    expected from the rest, extrapolated from the learning curve.
    """
    *_, measured = curve
    ahead = forecast(curve, found.folds / (found.folds - 1)) or measured
    return ahead['low'], ahead['high']


def _recall(recall: Tensor, n: int) -> dict:
    """Return the recall on n photos and its interval."""
    if recall.isnan():
        return dict(n=n, recall=None, low=None, high=None)
    low, high = wilson(float(recall), n)
    return dict(n=n, recall=float(recall), low=low, high=high)


def _write_cv_probabilities(plan: Plan, found: OutOfFold) -> int:
    """Write cv_probabilities.safetensors and photographs.csv.

    Both have the photos in the same order. Return the checksum of the table.
    """
    draft = plan.files.draft
    probabilities = found.probabilities().float().contiguous()
    tensors = dict(probabilities=probabilities, labels=found.labels)
    replace_bytes(draft.cv_probabilities, checksums.save_tensors(tensors))
    write_rows(draft.table, photo_rows(plan.checked, probabilities))
    return zlib.crc32(draft.table.read_bytes())


def photo_rows(checked: PhotoCheck, probabilities: Tensor) -> list[list]:
    """Return the rows of photographs.csv, training photos first.

    ``probabilities`` (N, K) of training photos are NaN if untested.
    """
    found = checked.photos
    names, groups = found.names, found.groups or [''] * len(found)
    facts = [*zip(found.paths, names, groups, found.splits, strict=True)]
    digests = [checked.digests.get(path, '') for path in found.paths]
    similar = defaultdict(list)
    for one, other in checked.near_duplicates:
        similar[one].append(other)
        similar[other].append(one)
    similar = [' | '.join(similar[path]) for path in found.paths]
    learned = dict(zip(found.to_train(), probabilities, strict=True))
    rows = [
        [
            *facts[i],
            True,
            '',
            *_prediction_cells(found, i, learned[i]),
            digests[i],
            similar[i],
        ]
        for i in learned
    ]
    empty = [''] * 3
    rows += [
        [*fact, False, f'{HELD_OUT} in {fact[-1]}', *empty, digests[i], '']
        for i, fact in enumerate(facts)
        if i not in learned
    ]
    reasons = found.unused | checked.unreadable
    for path, kept in checked.duplicates + checked.cross_split_duplicates:
        reasons[path] = f'same as {kept}'
    for paths in checked.conflicting_labels:
        reasons |= dict.fromkeys(paths, 'same photo in several classes')
    rows += [
        [x, *empty, False, why, *empty, '', ''] for x, why in reasons.items()
    ]
    return [COLUMNS, *rows]


def _prediction_cells(found: LabeledImages, i: int, probs: Tensor) -> list:
    """Return prediction, probability of the label and of the prediction."""
    if probs.isnan().any():
        return [''] * 3
    best = int(probs.argmax())
    likely = probs[[found.labels[i], best]].tolist()
    return [found.classes[best], *map('{:.6f}'.format, likely)]
