# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy of a fitted model and its 95% interval."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mmclca.apis import Probe
from mmclca.apis.probe import CurvePoint, OutOfFold, forecast
from mmclca.datasets.photos import LabeledImages
from mmclca.evaluation import accuracy, wilson

from .accuracy_parts import ClassRecall, Estimate, Measurement


def estimate_accuracy(
    cv: OutOfFold,
    curve: Sequence[CurvePoint],
    classes: Sequence[str],
    seconds: float,
) -> Estimate:
    """Estimate accuracy and recalls of a probe by cross-validation.

    Args:
        cv (OutOfFold): Cross-validated scores.
        curve (Sequence[CurvePoint]): Learning curve.
        classes (Sequence[str]): Class names.
        seconds (float): Duration, for the record.
    """
    low = high = mean = macro_recall = None
    if cv.independent:
        low, high = extrapolate_interval(cv, curve)
        mean, macro_recall = float(cv.accuracy.mean()), cv.macro_recall
    counts = cv.labels.bincount(minlength=len(classes)).tolist()
    recalls = map(estimate_recall, cv.recalls(), counts)
    return Estimate(
        classifier=cv.classifier.name,
        alpha=cv.setting.alpha,
        late_cls_weight=cv.setting.late_cls_weight,
        temperature=cv.temperature,
        folds=cv.folds,
        repeats=len(cv.logits),
        accuracy=mean,
        low=low,
        high=high,
        macro_recall=macro_recall,
        per_class=dict(zip(classes, recalls, strict=True)),
        seconds=seconds,
    )


def measure_cross_validated(cv: OutOfFold) -> Measurement | None:
    """Return the mean accuracy over repeats; None if nothing was tested."""
    if not cv.independent:
        return None
    low, high = cv.interval()
    number = len(cv.labels)
    return Measurement(number, float(cv.accuracy.mean()), low, high)


def extrapolate_interval(
    cv: OutOfFold, curve: Sequence[CurvePoint]
) -> tuple[float, float]:
    """Estimate the 95% interval of the accuracy with all photos.

    The last point of the curve has the interval of the cross-validated
    accuracy, see :func:`mmclca.evaluation.estimate_accuracy_interval`. Each
    fold is fitted to fewer photos, so the upper bound adds the gain expected
    from the rest, extrapolated from the learning curve.
    """
    point = forecast(curve, cv.folds / (cv.folds - 1)) or curve[-1]
    return point.low, point.high


def estimate_recall(recall: Tensor, n: int) -> ClassRecall:
    """Return the recall on n photos, NaN if not tested, and its interval."""
    if recall.isnan():
        return ClassRecall(n)
    low, high = wilson(float(recall), n)
    return ClassRecall(n, float(recall), low, high)


def measure_accuracy(
    probe: Probe, photos: LabeledImages
) -> tuple[Measurement, Tensor]:
    """Measure a model on photos not used for training.

    Return the accuracy with its 95% interval, and the class scores (N, K).
    """
    features, _ = probe.features(photos.paths)
    logits = probe.scores(features)
    labels = torch.tensor(photos.labels)
    mean = float(accuracy(logits, labels))
    low, high = wilson(mean, len(labels))
    return Measurement(len(labels), mean, low, high), logits
