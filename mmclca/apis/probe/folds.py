# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cross-validation of linear classifiers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mmclca.datasets.levels import coarse_labels
from mmclca.evaluation.accuracy import (
    accuracy,
    estimate_accuracy_interval,
    recalls,
)

from .classifiers import ProbeData, fit_linear
from .data import LabeledFeatures
from .fold_scores import choose_setting, prepare_fold_scores
from .likelihood import best_setting, fit_temperature
from .settings import (
    FIVE_FOLDS,
    MAX_NESTED,
    MAX_REPEATED,
    RIDGE,
    ClassifierSettings,
    FoldSettings,
    ProbeSetting,
)
from .solvers import LinearClassifier


@dataclass
class OutOfFold:
    """Cross-validated class scores.

    Args:
        logits (Tensor): Scores before softmax (R, N, K) for R repeats, divided
            by the temperature; NaN for images that were not tested.
        data (LabeledFeatures): Features, labels and groups.
        classifier (ClassifierSettings): Classifier and class weights.
        setting (ProbeSetting): Setting of the final classifier.
        temperature (float): Divisor that calibrates its scores.
        folds (int): Number of folds.
        independent (int): Number of tested images, or groups.
        splits (list[tuple]): Positions of the training and test images, for
            all folds and repeats.
        settings (list[ProbeSetting]): Setting of each split, selected on its
            training images.
    """

    logits: Tensor
    data: LabeledFeatures
    classifier: ClassifierSettings
    setting: ProbeSetting
    temperature: float
    folds: int
    independent: int
    splits: list[tuple]
    settings: list[ProbeSetting]

    @property
    def labels(self) -> Tensor:
        """Labels (N,)."""
        return torch.as_tensor(self.data.labels)

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
        """Labels whose classes have only one image or group."""
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


def out_of_fold(
    data: LabeledFeatures,
    classifier: ClassifierSettings = RIDGE,
    folds: FoldSettings = FIVE_FOLDS,
    progress: Callable = iter,
) -> OutOfFold:
    """Cross-validate a classifier by repeated stratified folds.

    The accuracy is slightly below the accuracy of the final classifier, since
    each fold trains on fewer images: on two of three per class, for example.
    The setting of each fold is selected by folds inside its training images.
    The setting of the final classifier is selected on these folds; the
    temperature minimizes the cross-entropy of their scores. Above
    ``MAX_REPEATED`` images, there is one repeat; above ``MAX_NESTED``, all
    folds have the final setting.

    Ridge regressions of all folds follow from one fit with the penalty of all
    images, see ``leave_out.py``. With balanced class weights, which depend on
    the training images, they are fitted in each fold.

    Args:
        data (LabeledFeatures): Features, labels and groups.
        classifier (ClassifierSettings): Classifier and class weights.
            Defaults to ridge regression with equal image weights.
        folds (FoldSettings): Folds, repeats and seed. Defaults to five
            folds, repeated five times.
        progress (Callable): Wrapper for the list of all folds, such as
            ``mmclca.utils.messages.track``. Defaults to ``iter``.

    Returns:
        OutOfFold: The scores. If no class has two images or groups, nothing
        is tested, and setting and temperature are defaults.

    Raises:
        Error: If a class is empty, a label is out of range, or features,
            labels and groups differ in number.
    """
    checked = ProbeData.from_features(data, classifier)
    labels = checked.labels
    repeats = folds.repeats if len(labels) <= MAX_REPEATED else 1
    cuts = [
        (repeat, *split)
        for repeat in range(repeats)
        for split in checked.splitter.folds(folds.folds, folds.seed + repeat)
    ]
    fold_scores = prepare_fold_scores(checked)
    logits = torch.full((repeats, len(labels), checked.num_classes), torch.nan)
    scores, chosen = [], []
    for _, train, test in progress(cuts):
        scores.append(fold_scores.scores(test).float())
        if len(labels) <= MAX_NESTED:
            others = fold_scores.without(test)
            chosen.append(
                choose_setting(others, train, folds.folds, folds.seed)
            )
    best = best_setting(
        scores,
        [labels[test] for _, _, test in cuts],
        checked.settings,
        checked.splitter.tested,
    )
    chosen = chosen or [best] * len(cuts)
    for (repeat, _, test), position, part in zip(
        cuts, chosen, scores, strict=True
    ):
        logits[repeat, test] = part[position]
    setting = checked.settings[best]
    tested = checked.splitter.tested
    calibration = logits
    if not tested:
        (fitted,) = checked.fit([setting])
        calibration = fitted.scores(checked.features[:, 0])
    temperature = fit_temperature(calibration, labels, tested)
    return OutOfFold(
        logits / temperature,
        data,
        classifier,
        setting,
        temperature,
        folds=len(cuts) // repeats,
        independent=tested,
        splits=[split for _, *split in cuts],
        settings=[checked.settings[x] for x in chosen],
    )


def fit_chosen(
    data: LabeledFeatures,
    classifier: ClassifierSettings = RIDGE,
    folds: FoldSettings = FIVE_FOLDS,
    progress: Callable = iter,
) -> tuple[OutOfFold, LinearClassifier]:
    """Cross-validate a classifier, and fit it with the selected setting.

    The arguments are described in :func:`out_of_fold`. The classifier scores
    are not yet divided by the temperature.
    """
    cross_validated = out_of_fold(data, classifier, folds, progress)
    fitted = fit_linear(data, classifier, cross_validated.setting)
    return cross_validated, fitted
