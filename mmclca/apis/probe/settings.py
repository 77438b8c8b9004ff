# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Settings for a linear probe: classifier, folds, regularization."""

from dataclasses import dataclass
from typing import NamedTuple

from mmclca.utils.messages import check_choice

LOGISTIC_ALPHAS = (100.0, 1.0, 10.0, 1000.0, 10000.0)
# above these numbers of images, there is one repeat, and all folds have the
# setting that is selected on them
MAX_REPEATED, MAX_NESTED = 2000, 10000
# candidates if there are two feature subsets
LATE_CLS_WEIGHTS = tuple(tenths / 10 for tenths in range(1, 11))
# standard deviation for the normal prior around the default setting, in the
# second subset's weight and in log10(alpha)
PRIOR_DEVIATION = 0.4


@dataclass(frozen=True)
class Alphas:
    """Regularization strengths for a classifier.

    Args:
        single (tuple[float, ...]): Candidates for one feature subset, the
            default first.
        first (tuple[float, ...]): Candidates for the first subset if there are
            two, the default first.
        second (float): Strength for the second subset. A few late CLS tokens
            need more regularization than all layers.
    """

    single: tuple[float, ...]
    first: tuple[float, ...]
    second: float


CLASSIFIERS = dict(
    ridge=Alphas(
        single=(0.3, 0.03, 0.1, 1.0, 3.0),
        first=(0.03, 0.01, 0.1, 0.3, 1.0),
        second=1.0,
    ),
    logistic=Alphas(LOGISTIC_ALPHAS, LOGISTIC_ALPHAS, second=100.0),
)


class ProbeSetting(NamedTuple):
    """Regularization strength, and weight of the second feature subset.

    Larger values of ``alpha`` regularize more with 'ridge', less with
    'logistic'. The second subset has the late CLS tokens; its regularization
    strength is :attr:`Alphas.second`.
    """

    alpha: float
    late_cls_weight: float = 0.0

    @property
    def subset_weights(self) -> tuple[float, float]:
        """Weights for the scores of the two feature subsets."""
        return 1 - self.late_cls_weight, self.late_cls_weight


@dataclass(frozen=True)
class ClassifierSettings:
    """Settings for a linear classifier.

    Args:
        name (str): A key of ``CLASSIFIERS``, 'ridge' or 'logistic'. Defaults
            to 'ridge'.
        class_weights (str, optional): 'balanced' to weight classes equally.
            Defaults to None: images are weighted equally.

    Raises:
        Error: If a setting is unknown.
    """

    name: str = 'ridge'
    class_weights: str | None = None

    def __post_init__(self):
        check_choice(CLASSIFIERS, classifier=self.name)
        weights = self.class_weights or 'balanced'
        check_choice(('balanced',), class_weights=weights)


@dataclass(frozen=True)
class FoldSettings:
    """Settings for repeated stratified cross-validation.

    Args:
        folds (int): Number of folds, fewer if no class has as many images.
            Defaults to 5.
        repeats (int): Number of repeats; above ``MAX_REPEATED`` images one.
            Defaults to 5.
        seed (int): Random seed of the splits. Defaults to 0.
    """

    folds: int = 5
    repeats: int = 5
    seed: int = 0


RIDGE = ClassifierSettings()
FIVE_FOLDS = FoldSettings()
