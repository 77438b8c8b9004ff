# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cross-validation of linear classifiers, and learning curves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from mmclca.datasets.levels import coarse_labels
from mmclca.evaluation.accuracy import (
    accuracy,
    estimate_accuracy_interval,
    recalls,
)

from .classifiers import (
    LinearClassifier,
    ProbeData,
    ProbeSetting,
    best_setting,
    fit_linear,
)

MAX_SCORES = 2**25  # over all repeats: many images need no repeats
SIZES = (1, 2, 3, 5, 10, 20, 50, 100)  # images per class
MIN_ERROR = 0.001  # avoids the logarithm of zero
MIN_EXPONENT = -1  # twice the images at most halve the error


@dataclass
class OutOfFold:
    """Cross-validated class scores.

    Args:
        logits (Tensor): Scores before softmax (R, N, K) for R repeats, divided
            by the temperature; NaN for images that were not tested.
        labels (Tensor): Labels (N,).
        setting (ProbeSetting): Setting of the final classifier.
        temperature (float): Divisor that calibrates its scores.
        folds (int): Number of folds.
        independent (int): Number of tested images, or groups.
        splits (list[tuple]): Positions of the training and test images, for
            all folds and repeats.
        settings (list[ProbeSetting]): Setting of each split, selected on its
            training images.
        feature_subsets (Sequence[Tensor], optional): See :func:`out_of_fold`.
    """

    logits: Tensor
    labels: Tensor
    setting: ProbeSetting
    temperature: float
    folds: int
    independent: int
    splits: list[tuple]
    settings: list[ProbeSetting]
    feature_subsets: Sequence[Tensor] | None = None

    @property
    def accuracy(self) -> Tensor:
        """Accuracy per repeat (R,)."""
        return accuracy(self.logits, self.labels)

    def level_accuracies(self, classes: Sequence[str], coarse_of: dict):
        """Accuracy on coarse classes, and on classes given the coarse class.

        Both are means over repeats.

        Args:
            classes (Sequence[str]): Class names.
            coarse_of (dict[str, str]): Coarse class by class name.
        """
        coarse = torch.tensor(coarse_labels(classes, coarse_of)[0])
        labels, scores = coarse[self.labels], self.logits
        best = [scores[..., coarse == x].amax(-1) for x in coarse.unique()]
        is_same = (coarse == labels[:, None]).to(scores)
        at_level = accuracy(torch.stack(best, dim=-1), labels)
        inside = accuracy(scores + is_same.log(), self.labels)
        return at_level.mean().item(), inside.mean().item()

    @property
    def macro_recall(self) -> float:
        """Mean recall over tested classes."""
        return float(self.recalls().nanmean())

    @property
    def untested(self) -> list[int]:
        """Labels of the classes with only one image or group."""
        return torch.where(self.recalls().isnan())[0].tolist()

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval for the mean accuracy.

        See :func:`mmclca.evaluation.estimate_accuracy_interval`.

        Args:
            level (float): Confidence level. Defaults to 0.95.
        """
        mean = float(self.accuracy.mean())
        return estimate_accuracy_interval(mean, self.independent, level)

    def recalls(self) -> Tensor:
        """Recall per class (K,), NaN if not tested."""
        return recalls(self.logits, self.labels)

    def probabilities(self) -> Tensor:
        """Mean softmax over the repeats (N, K), NaN if not tested."""
        return self.logits.softmax(2).nanmean(0)


@dataclass(frozen=True)
class CurvePoint:
    """Point of a learning curve.

    Args:
        photos (int): Training images per class.
        accuracy (float): Mean accuracy over repeats.
        low (float): Lower bound of the 95% interval, see
            :func:`mmclca.evaluation.estimate_accuracy_interval`.
        high (float): Upper bound.
    """

    photos: int
    accuracy: float
    low: float
    high: float


def out_of_fold(
    features: Tensor,
    labels: Tensor | Sequence[int],
    num_classes: int,
    classifier: str = 'ridge',
    groups: Sequence | None = None,
    folds: int = 5,
    repeats: int = 5,
    seed: int = 0,
    class_weights: str | None = None,
    feature_subsets: Sequence[Tensor] | None = None,
    progress: Callable = iter,
) -> OutOfFold:
    """Cross-validate a classifier by repeated stratified folds.

    The accuracy is slightly below the accuracy of the final classifier, since
    each fold trains on fewer images: on two of three per class, for example.
    The setting of each fold is selected by folds inside its training images.
    The setting of the final classifier is selected on these folds; the
    temperature minimizes the cross-entropy of their scores.

    Args:
        features (Tensor): (N, D), or (N, V, D) for V views per image: all
            views are used for training, the first one for the test.
        labels (Tensor | Sequence[int]): Labels (N,), from 0.
        num_classes (int): Number of classes K.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        groups (Sequence, optional): Group of each image (N,), such as the
            plant. Each group stays in one fold. Defaults to None: each image
            is a group.
        folds (int): Number of folds, fewer if no class has as many images.
            Defaults to 5.
        repeats (int): Number of repeats, fewer for millions of images times
            classes. Defaults to 5.
        seed (int): Random seed of the splits. Defaults to 0.
        class_weights (str, optional): 'balanced' to weight classes equally.
            Defaults to None: images are weighted equally.
        feature_subsets (Sequence[Tensor], optional): See :func:`fit_linear`.
            Defaults to None.
        progress (Callable): Wrapper for the list of all folds, such as
            ``mmclca.utils.messages.track``. Defaults to ``iter``.

    Returns:
        OutOfFold: The scores. If no class has two images or groups, nothing
        is tested, and setting and temperature are defaults.

    Raises:
        Error: If the classifier is unknown, a class is empty, or the
            numbers of groups and images differ.
    """
    data = ProbeData.from_features(
        features,
        labels,
        num_classes,
        classifier,
        groups,
        class_weights,
        feature_subsets,
    )
    labels = data.labels
    allowed = MAX_SCORES // (len(labels) * num_classes)
    repeats = max(1, min(repeats, allowed))
    cuts = [
        (repeat, *split)
        for repeat in range(repeats)
        for split in data.splitter.folds(folds, seed + repeat)
    ]
    logits = torch.full((repeats, len(labels), num_classes), torch.nan)
    correct = torch.full((len(data.settings), repeats, len(labels)), torch.nan)
    settings = []
    for repeat, train, test in progress(cuts):
        scores = data.scores(train, test)
        is_correct = scores.argmax(2) == labels[test]
        correct[:, repeat, test] = is_correct.float()
        chosen = data.part(train).choose(folds, seed)
        logits[repeat, test] = scores[chosen].float()
        settings.append(data.settings[chosen])
    setting = data.settings[best_setting(correct.nanmean(1))]
    tested = data.splitter.tested
    calibration = logits
    if not tested:
        (fitted,) = data.fit([setting])
        calibration = fitted.scores(data.features[:, 0])
    temperature = fit_temperature(calibration, labels, tested)
    return OutOfFold(
        logits / temperature,
        labels,
        setting,
        temperature,
        folds=len(cuts) // repeats,
        independent=tested,
        splits=[split for _, *split in cuts],
        settings=settings,
        feature_subsets=feature_subsets,
    )


def fit_chosen(
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    classifier: str,
    *,
    class_weights: str | None = None,
    feature_subsets: Sequence[Tensor] | None = None,
    **folds,
) -> tuple[OutOfFold, LinearClassifier]:
    """Cross-validate a classifier, and fit it with the selected setting.

    The settings are described in :func:`out_of_fold`. The classifier scores
    are not yet divided by the temperature.
    """
    cross_validated = out_of_fold(
        features,
        labels,
        num_classes,
        classifier,
        class_weights=class_weights,
        feature_subsets=feature_subsets,
        **folds,
    )
    fitted = fit_linear(
        features,
        labels,
        num_classes,
        classifier,
        alpha=cross_validated.setting.alpha,
        class_weights=class_weights,
        feature_subsets=feature_subsets,
        late_cls_weight=cross_validated.setting.late_cls_weight,
    )
    return cross_validated, fitted


def learning_curve(
    cross_validated: OutOfFold,
    features: Tensor,
    classifier: str = 'ridge',
    groups: Sequence | None = None,
    sizes: Sequence[int] = SIZES,
    class_weights: str | None = None,
    progress: Callable = iter,
) -> list[CurvePoint]:
    """Cross-validated accuracy by the number of training images per class.

    For each size, a random subset of the training images in each split is
    fitted with the setting of this split, and the same images are tested as
    in ``cross_validated``, whose accuracy is the last point.

    Args:
        cross_validated (OutOfFold): Result of :func:`out_of_fold` with these
            images.
        features (Tensor): (N, D), or (N, V, D) for V views per image.
        classifier (str): A key of ``CLASSIFIERS``. Defaults to 'ridge'.
        groups (Sequence, optional): See :func:`out_of_fold`; groups are
            counted instead of images. Defaults to None.
        sizes (Sequence[int]): Images per class. If classes differ in size,
            images of the median class; the subset has the same share of each
            class, at least one image. Defaults to 1, 2, 3, 5, 10, 20, 50 and
            100.
        class_weights (str, optional): See :func:`out_of_fold`. Defaults to
            None.
        progress (Callable): Wrapper for the list of sizes. Defaults to
            ``iter``.

    Returns:
        list[CurvePoint]: A point per size. Empty if no image was tested.

    Raises:
        Error: See :func:`out_of_fold`.
    """
    data = ProbeData.from_features(
        features,
        cross_validated.labels,
        cross_validated.logits.shape[-1],
        classifier,
        groups,
        class_weights,
        cross_validated.feature_subsets,
    )
    if not cross_validated.independent:
        return []
    median = np.median(data.splitter.per_class)
    largest = max(round(median * (1 - 1 / cross_validated.folds)), 1)
    smaller = [size for size in sizes if size < largest]
    curve = {
        size: _subset_accuracy(cross_validated, data, size / median)
        for size in progress(smaller)
    }
    curve[largest] = float(cross_validated.accuracy.mean())
    points = []
    for size, mean in curve.items():
        low, high = estimate_accuracy_interval(
            mean, cross_validated.independent
        )
        points.append(CurvePoint(size, mean, low, high))
    return points


def _subset_accuracy(
    cross_validated: OutOfFold, data: ProbeData, share: float
) -> float:
    """Cross-validate with a share of each class, at least one image."""
    numbers = np.rint(share * data.splitter.per_class).clip(1)
    logits = torch.full_like(cross_validated.logits, torch.nan)
    for i, (train, test) in enumerate(cross_validated.splits):
        units = data.part(train).splitter
        subset = data.part(train[units.draw(numbers, i)]).in_span()
        (fitted,) = subset.fit([cross_validated.settings[i]])
        tested = data.features[test, 0]
        if subset.basis is not None:
            tested = tested @ subset.basis
        logits[i // cross_validated.folds, test] = fitted.scores(
            tested
        ).float()
    return float(accuracy(logits, data.labels).mean())


def fit_temperature(logits: Tensor, labels: Tensor, tested: int) -> float:
    """Fit the temperature that calibrates class scores (..., N, K).

    C. Guo et al., `On Calibration of Modern Neural Networks
    <https://arxiv.org/abs/1706.04599>`_ (2017). The temperature minimizes the
    cross-entropy. Labels are smoothed as in Platt scaling, by one correct and
    one wrong image among the ``tested`` independent images: a few correct
    images do not give certainty. Scores are NaN for images that were not
    tested.
    """
    labels = labels.expand(logits.shape[:-1])
    is_tested = ~logits[..., 0].isnan()
    logits, labels = logits[is_tested], labels[is_tested]
    logits, smoothing = logits.double(), 1 / (tested + 2)
    log_temperature = logits.std().add(1e-12).log().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [log_temperature], max_iter=100, line_search_fn='strong_wolfe'
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        cross_entropy = F.cross_entropy(
            logits / log_temperature.exp(), labels, label_smoothing=smoothing
        )
        cross_entropy.backward()
        return cross_entropy

    with torch.enable_grad():
        optimizer.step(loss)
    return float(log_temperature.detach().exp())


def forecast(points: Sequence[CurvePoint], factor: float) -> CurvePoint | None:
    """Extrapolate a learning curve from its last point.

    The error falls as a power of the image count, `Deep Learning Scaling is
    Predictable, Empirically <https://arxiv.org/abs/1712.00409>`_. A line
    through the logarithms of all points gives the exponent, limited to -1 to
    0. The lower bound stays, the upper bound rises by the gain.

    Args:
        points (Sequence[CurvePoint]): Result of :func:`learning_curve`.
        factor (float): Number of images relative to the last point.

    Returns:
        CurvePoint | None: Another point, None for fewer than two points.
    """
    if len(points) < 2:
        return None
    last = points[-1]
    x = np.log([point.photos for point in points])
    errors = 1 - np.array([point.accuracy for point in points])
    exponent, _ = np.polyfit(x, np.log(errors.clip(MIN_ERROR)), deg=1)
    mean, left = last.accuracy, factor ** exponent.clip(MIN_EXPONENT, 0)
    gain = float((1 - mean) * (1 - left))
    return replace(
        last,
        photos=round(factor * last.photos),
        accuracy=mean + gain,
        high=min(last.high + gain, 1.0),
    )
