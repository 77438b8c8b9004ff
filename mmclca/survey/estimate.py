# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy and photos per class in a folder, from a labeled sample."""

from dataclasses import dataclass

import numpy as np

from mmclca.errors import Error

from .correctness import LabeledPredictions, sample_correctness

NUM_SAMPLES = 4000
CHUNK = 2**22  # simulated photos at a time, for the memory
# Dirichlet prior for the class when misclassified, in labels
STRENGTH, UNIFORM_SHARE = 1.0, 0.3
# beta prior (Jeffreys) for the share without a class when misclassified
NONE, OTHERS = 0.5, 0.5


@dataclass(frozen=True)
class Estimated:
    """Estimate with its 95% interval, from ``low`` to ``high``."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class SurveyEstimate:
    """Accuracy and class counts in a folder.

    Args:
        accuracy (Estimated): Share of correct predictions.
        counts (list[Estimated]): Photos per class (K + 1,), at the end
            without a class.
    """

    accuracy: Estimated
    counts: list[Estimated]


@dataclass(frozen=True)
class Survey:
    """Classified photos, some with labels.

    Args:
        probabilities (np.ndarray): Class probabilities (N, K).
        positions (np.ndarray): Labeled photos (n,), a random sample given
            predicted class and score.
        labels (np.ndarray): Their labels (n,); K without a class.
        confusions (np.ndarray): Cross-validated training photos by predicted
            class and label (K, K).
    """

    probabilities: np.ndarray
    positions: np.ndarray
    labels: np.ndarray
    confusions: np.ndarray

    @property
    def num_classes(self) -> int:
        """Number of classes K."""
        return self.probabilities.shape[1]

    @property
    def predicted(self) -> np.ndarray:
        """Predicted class (N,)."""
        return self.probabilities.argmax(axis=1)

    def check(self) -> None:
        """Raise an ``Error`` if shapes or values do not fit."""
        photos, classes = self.probabilities.shape
        if self.confusions.shape != (classes, classes):
            raise Error(
                f'confusions of shape {self.confusions.shape}, expected '
                f'{(classes, classes)} for {classes} classes'
            )
        number = len(self.positions)
        if number == 0 or len({*self.positions.tolist()}) < number:
            raise Error('positions must be at least one photo, each once')
        if not np.isin(self.positions, np.arange(photos)).all():
            raise Error(f'positions must be from 0 to {photos - 1}')
        is_label = np.isin(self.labels, np.arange(classes + 1))
        if len(self.labels) != number or not is_label.all():
            raise Error(
                f'labels must be {number} integers from 0 to {classes}'
            )


def estimate_survey(
    survey: Survey,
    level: float = 0.95,
    seed: int = 0,
    num_samples: int = NUM_SAMPLES,
) -> SurveyEstimate:
    """Estimate the accuracy, and the number of photos per class.

    Unlabeled photos are simulated from the posterior given the labels, and
    labeled photos count as they are, so that intervals shrink to a point if
    all photos are labeled. See W. A. Ericson, `Subjective Bayesian Models in
    Sampling Finite Populations
    <https://doi.org/10.1111/j.2517-6161.1969.tb00782.x>`_ (1969). Which
    predictions are correct follows a hierarchical logistic regression on the
    score. When misclassified, the class follows a Dirichlet model per
    predicted class. Its prior is the mean of cross-validated confusions and
    probabilities.

    As in A. N. Angelopoulos et al., `Prediction-powered inference
    <https://doi.org/10.1126/science.adi6000>`_ (2023), labels correct the
    predictions for all photos.

    Args:
        survey (Survey): Predictions and labels.
        level (float): Credibility of the intervals. Defaults to 0.95.
        seed (int): Random seed. Defaults to 0.
        num_samples (int): Simulated folders. Defaults to 4,000.

    Returns:
        SurveyEstimate: Accuracy and counts.

    Raises:
        Error: If shapes or values in ``survey`` do not fit.
    """
    survey.check()
    rng = np.random.default_rng(seed)
    counts, correct = simulate(survey, num_samples, rng)
    number = len(survey.probabilities)
    return SurveyEstimate(
        accuracy=compute_interval(correct / number, level),
        counts=[compute_interval(column, level) for column in counts.T],
    )


def compute_interval(samples: np.ndarray, level: float) -> Estimated:
    """Return median and central interval for samples (S,)."""
    tail = (1 - level) / 2
    low, median, high = np.quantile(
        samples, [tail, 0.5, 1 - tail], method='inverted_cdf'
    )
    return Estimated(float(median), float(low), float(high))


def simulate(
    survey: Survey, num_samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate labels for all photos.

    Args:
        survey (Survey): Predictions and labels.
        num_samples (int): Number of samples S.
        rng (np.random.Generator): Random numbers.

    Returns:
        tuple[np.ndarray, np.ndarray]: Photos per class (S, K + 1), at the
        end without a class, and correct predictions (S,).
    """
    size = survey.num_classes
    is_correct = survey.predicted[survey.positions] == survey.labels
    correct, wrong = simulate_correct(survey, is_correct, num_samples, rng)
    counts = np.zeros((num_samples, size + 1), dtype=int)
    counts[:, :size] = correct
    counts += assign_wrong(survey, wrong, rng)
    counts += np.bincount(survey.labels, minlength=size + 1)
    return counts, correct.sum(axis=1) + is_correct.sum()


def simulate_correct(
    survey: Survey,
    is_correct: np.ndarray,
    num_samples: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate correct and wrong predictions for unlabeled photos.

    Return both by predicted class, (S, K) each.
    """
    size, predicted = survey.num_classes, survey.predicted
    data = LabeledPredictions(
        predicted,
        survey.probabilities.max(axis=1),
        survey.positions,
        is_correct,
        int(survey.confusions.sum()),
    )
    samples = sample_correctness(data, size, num_samples, rng)
    logits = data.logits
    unlabeled = np.setdiff1d(np.arange(len(predicted)), survey.positions)
    correct = np.zeros((num_samples, size), dtype=int)
    step = max(1, CHUNK // num_samples)
    for start in range(0, len(unlabeled), step):
        part = unlabeled[start : start + step]
        draws = samples.draw_correct(rng, predicted[part], logits[part])
        members = np.eye(size, dtype=np.float32)[predicted[part]]
        correct += (draws.astype(np.float32) @ members).astype(int)
    numbers = np.bincount(predicted[unlabeled], minlength=size)
    return correct, numbers - correct


def assign_wrong(
    survey: Survey, wrong: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw the classes for misclassified photos.

    Args:
        survey (Survey): Predictions and labels.
        wrong (np.ndarray): Misclassified photos by predicted class (S, K).
        rng (np.random.Generator): Random numbers.

    Returns:
        np.ndarray: Misclassified photos by class (S, K + 1), at the end
        without a class.
    """
    size = survey.num_classes
    predicted = survey.predicted[survey.positions]
    is_wrong = predicted != survey.labels
    is_none = survey.labels == size
    # one share for all predicted classes, whose labels are few
    share = rng.beta(
        NONE + is_none.sum(), OTHERS + (is_wrong & ~is_none).sum(), len(wrong)
    )
    assigned = np.zeros((len(wrong), size + 1), dtype=int)
    prior = compute_confusion_prior(survey)
    for name in np.flatnonzero(wrong.any(axis=0)):
        without = rng.binomial(wrong[:, name], share)
        labels = survey.labels[is_wrong & ~is_none & (predicted == name)]
        weights = prior[name] + np.bincount(labels, minlength=size)
        columns = np.flatnonzero(np.arange(size) != name)
        shares = rng.standard_gamma(weights[columns], (len(wrong), size - 1))
        shares = np.maximum(shares, np.finfo(float).tiny)
        shares /= shares.sum(axis=1, keepdims=True)
        assigned[:, columns] += rng.multinomial(
            wrong[:, name] - without, shares
        )
        assigned[:, size] += without
    return assigned


def compute_confusion_prior(survey: Survey) -> np.ndarray:
    """Compute the Dirichlet prior for classes when misclassified.

    It averages cross-validated confusions with the predicted class and
    probabilities of the photos; a small share is uniform.

    Args:
        survey (Survey): Predictions and labels.

    Returns:
        np.ndarray: Weights by predicted class and class (K, K), with a sum
        of ``STRENGTH`` and a diagonal of 0.
    """
    size = survey.num_classes
    off_diagonal = 1 - np.eye(size)
    members = np.eye(size)[survey.predicted]
    prior = np.zeros((size, size))
    for part in (members.T @ survey.probabilities, survey.confusions):
        errors = part * off_diagonal
        sums = errors.sum(axis=1, keepdims=True)
        prior += np.divide(errors, sums, where=sums > 0, out=0 * errors)
    sums = prior.sum(axis=1, keepdims=True)
    uniform = off_diagonal / (size - 1)
    prior = np.divide(prior, sums, where=sums > 0, out=uniform.copy())
    mixed = (1 - UNIFORM_SHARE) * prior + UNIFORM_SHARE * uniform
    return STRENGTH * mixed
