# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""First step of a fit: linear probe on the pretrained backbone."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.probe import FoldSettings, OutOfFold, learning_curve
from mmclca.datasets.near_duplicates import find_near_duplicates, join_groups
from mmclca.datasets.photos import LabeledImages, group_by_day
from mmclca.evaluation import open_set
from mmclca.evaluation.fusion import measure_plants
from mmclca.models.heads import (
    drop_references,
    keep_references,
    nearest_of_others,
)
from mmclca.utils.files import replace_text
from mmclca.utils.messages import track

from .accuracy_parts import Measurement
from .calibration import calibrate
from .candidates import list_variants
from .estimate import (
    estimate_accuracy,
    measure_accuracy,
    measure_cross_validated,
)
from .model_config import build_config
from .photo_table import write_predictions
from .plan import Plan, list_labels
from .record import FitRecord
from .record_parts import ThresholdEstimate
from .shortcuts import measure_shortcuts


def run_probe(plan: Plan, record: FitRecord) -> FitRecord:
    """Fit the probe, estimate its accuracy, and write it as the model.

    If the model was fine-tuned before, its classifier is fitted again, and
    the fine-tuned backbone stays.

    Returns:
        FitRecord: The record with ``table``, ``probe``, ``same_days``,
        ``plants``, ``shortcuts``, ``learning_curve``, ``threshold`` and
        ``test``.
    """
    start = time.perf_counter()
    files, training, probe = plan.files, plan.training_photos, plan.probe
    views = plan.views
    same_days = None
    if plan.tests_other_days:
        cv = fit_classifier(plan, probe, training, views)
        same_days = measure_cross_validated(cv)
        training = join_days(training, plan.checked.near_duplicates)
    cv = fit_classifier(plan, probe, training, views)
    probe.save(files.draft.probe)
    calibration = calibrate(plan, cv)
    table = write_predictions(files.draft, plan.checked, calibration)
    shortcuts = measure_shortcuts(plan, cv, calibration)
    curve = learning_curve(
        cv, progress=partial(track, description='Learning curve')
    )
    plants = None
    if record.is_grouped and training.groups is not None:
        plants = measure_plants(cv.logits, cv.labels, training.groups)
    seconds = time.perf_counter() - start
    estimate = estimate_accuracy(cv, curve, training.classes, seconds)
    if record.final == 'trained':
        probe = plan.build_probe(files.model, features=files.features)
        views, _ = probe.views(training.paths)
        cv = fit_classifier(plan, probe, training, views)
    references = plan.select_references(views)
    similarities = nearest_of_others(references, cv.splits)
    return replace(
        record,
        table=table,
        probe=estimate,
        same_days=same_days,
        plants=plants,
        shortcuts=shortcuts,
        learning_curve=curve,
        threshold=write_model(
            plan, probe, references, similarities, training.groups
        ),
        test=measure_test(plan, probe),
    )


def join_near_duplicates(
    plan: Plan, record: FitRecord
) -> tuple[Plan, FitRecord]:
    """Keep near-duplicate photos in one group, and note them in a record.

    Groups are those of all pairs in the record. Pairs are searched once, in
    photos that are new to the model.
    """
    checked, training = plan.checked, plan.training_photos
    pairs = record.photos.near_duplicates
    new = [
        i
        for i, path in enumerate(training.paths)
        if path not in checked.files.listed_paths
    ]
    if new and (pairs is None or plan.adds_photos):
        pairs = [
            *(pairs or ()),
            *find_near_duplicates(training.select(new), plan.views[new, 0]),
        ]
    pairs = [(path, other) for path, other in pairs or ()]
    photos = checked.photos
    if pairs:
        photos = replace(photos, groups=join_groups(photos, pairs))
    checked = replace(checked, photos=photos, near_duplicates=pairs)
    new_photos = replace(
        record.photos,
        near_duplicates=pairs,
        near_duplicate_counts=checked.near_duplicate_counts,
        problems=checked.list_problems(),
    )
    return plan.with_groups(checked), replace(record, photos=new_photos)


def join_days(
    photos: LabeledImages, pairs: Sequence[tuple[str, str]]
) -> LabeledImages:
    """Group photos by day, and days joined by near-duplicates."""
    photos = replace(photos, groups=group_by_day(photos))
    return replace(photos, groups=join_groups(photos, pairs))


def fit_classifier(
    plan: Plan, probe: Probe, photos: LabeledImages, views: Tensor
) -> OutOfFold:
    """Fit the last layer to features (N, V, D), and cross-validate."""
    return probe.fit(
        views,
        list_labels(photos),
        photos.classes,
        photos.groups,
        plan.classifier,
        FoldSettings(plan.options.folds),
    )


def describe_coarse(plan: Plan, coarse_classes: dict[str, str]) -> str:
    """Describe the accuracy on coarse classes and within them."""
    cv = fit_classifier(plan, plan.probe, plan.training_photos, plan.views)
    coarse, fine = cv.level_accuracies(
        plan.training_photos.classes, coarse_classes
    )
    return (
        f'Coarse     {coarse:.1%} accuracy on coarse classes; {fine:.1%} on '
        'fine classes, given the coarse class'
    )


class BestCandidate(NamedTuple):
    """Plan with the most accurate candidate, and its cross-validation."""

    plan: Plan
    cv: OutOfFold


def cross_validate_best(plan: Plan) -> BestCandidate:
    """Cross-validate a probe on the most accurate candidate."""
    variant, *_ = list_variants(plan.pretrained)
    config = build_config(
        plan.pretrained, variant, len(plan.training_photos.classes)
    )
    best = replace(plan, variant=variant, config=config)
    cv = fit_classifier(best, best.probe, best.training_photos, best.views)
    return BestCandidate(best, cv)


def write_model(
    plan: Plan,
    probe: Probe,
    references: Tensor,
    similarities: Tensor,
    groups: Sequence[str] | None,
) -> ThresholdEstimate:
    """Write a probe as the model, with its unknown-class threshold.

    The model stores ``references``, features (N, R, D) of the training photos
    and, with :attr:`FitOptions.any_direction`, of turned ones. New photos
    whose similarity to every feature is below the threshold are flagged as
    unknown. It is set on cross-validated ``similarities`` (S, N), NaN for
    photos not tested in a split. ``groups`` are those of the photos. Too few
    photos give no threshold, and an empty threshold file.
    """
    draft = plan.files.draft
    keep_references(probe.model, references.flatten(0, 1))
    probe.save(draft.model)
    figures = open_set.threshold_by_folds(
        similarities, groups, plan.options.folds
    )
    if figures:
        figures = dict(score=open_set.NEAREST, **figures)
        open_set.write_threshold(draft.threshold, probe.model, **figures)
    else:
        replace_text(draft.threshold, '')
    drop_references(probe.model)
    return ThresholdEstimate(**figures)


def measure_test(plan: Plan, probe: Probe) -> Measurement | None:
    """Measure a model on val and test photos; None without any."""
    if not len(plan.test):
        return None
    measurement, _ = measure_accuracy(probe, plan.test)
    return measurement
