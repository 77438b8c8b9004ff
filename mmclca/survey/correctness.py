# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Posterior probability for a prediction to be correct.

Scores are calibrated for photos like the training photos. On other photos,
their logit is off by a common shift, has another slope, and differs between
predicted classes. This is a hierarchical logistic regression, as in
A. Gelman, T. C. Little, "Poststratification into Many Categories Using
Hierarchical Logistic Regression", Survey Methodology 23 (1997). Its posterior
is computed on a grid, without an approximation for few labels.
"""

from dataclasses import dataclass

import numpy as np

LOGITS = -4, 7  # limits: scores of 0 and 1 are not certain
SHIFTS = np.linspace(-4.5, 3, 26)
SLOPES = np.array([0.2, 0.5, 0.8, 1.1, 1.5])
SPREADS = np.array([0.3, 0.8, 1.5])  # between classes, standard deviation
EFFECTS = np.linspace(-2.1, 2.1, 7)  # per class, in spreads
# prior for the shift: the photos are like the training photos, or not
ALIKE, UNLIKE_MEAN, UNLIKE_SD = 0.5, -0.5, 1.3
ALIKE_SD, ALIKE_VARIANCE = 0.25, 5.0  # variance per training photo
SLOPE_MEAN, SLOPE_SD = 0.9, 0.3
SPREAD_PRIOR = np.array([0.35, 0.35, 0.3])


@dataclass(frozen=True)
class LabeledPredictions:
    """Predictions for all photos, and for labeled ones whether correct.

    Args:
        predicted (np.ndarray): Predicted class (N,).
        scores (np.ndarray): Probability of the predicted class (N,).
        positions (np.ndarray): Labeled photos (n,).
        is_correct (np.ndarray): Whether their prediction is correct (n,).
        training_photos (int): Photos on which the scores were calibrated.
    """

    predicted: np.ndarray
    scores: np.ndarray
    positions: np.ndarray
    is_correct: np.ndarray
    training_photos: int

    @property
    def logits(self) -> np.ndarray:
        """Logits of the scores (N,)."""
        tiny = 1e-6
        scores = np.clip(self.scores, tiny, 1 - tiny)
        return np.clip(np.log(scores) - np.log1p(-scores), *LOGITS)


@dataclass(frozen=True)
class CorrectnessSamples:
    """Samples from the posterior.

    Args:
        center (float): Mean logit.
        shift (np.ndarray): Shift (S, 1).
        slope (np.ndarray): Slope (S, 1).
        effect (np.ndarray): Shift per predicted class (S, K).
    """

    center: float
    shift: np.ndarray
    slope: np.ndarray
    effect: np.ndarray

    def draw_correct(
        self,
        rng: np.random.Generator,
        predicted: np.ndarray,
        logits: np.ndarray,
    ) -> np.ndarray:
        """Draw which predictions are correct, (S, N), for N photos."""
        values = self.center + self.shift + self.effect[:, predicted]
        values = values + self.slope * (logits - self.center)
        draws = rng.random(values.shape, dtype=np.float32)
        return draws < 1 / (1 + np.exp(-values))


def sample_correctness(
    data: LabeledPredictions,
    num_classes: int,
    num_samples: int,
    rng: np.random.Generator,
) -> CorrectnessSamples:
    """Sample the posterior in the hierarchical logistic regression.

    Args:
        data (LabeledPredictions): Predictions and labels.
        num_classes (int): Number of classes K.
        num_samples (int): Number of samples S.
        rng (np.random.Generator): Random numbers.

    Returns:
        CorrectnessSamples: Parameters per sample.
    """
    logits = data.logits
    center = float(logits.mean())
    classes, class_of = np.unique(
        data.predicted[data.positions], return_inverse=True
    )
    likelihood = compute_log_likelihood(
        logits[data.positions] - center,
        center,
        np.where(data.is_correct, 1.0, -1.0),
        np.eye(len(classes))[class_of],
    )
    weights = -(EFFECTS**2) / 2
    joint = likelihood + (weights - np.log(np.exp(weights).sum()))[:, None]
    maxima = joint.max(axis=3, keepdims=True)
    marginal = np.log(np.exp(joint - maxima).sum(axis=3)) + maxima[:, :, :, 0]
    posterior = marginal.sum(axis=3) + compute_log_prior(data.training_photos)
    shares = np.exp(posterior - posterior.max()).ravel()
    cells = rng.choice(len(shares), num_samples, p=shares / shares.sum())
    shift, slope, spread = np.unravel_index(cells, posterior.shape)
    effects = rng.standard_normal((num_samples, num_classes))
    # classes without a label keep their prior effect
    conditional = joint[shift, slope, spread]
    conditional = np.exp(conditional - conditional.max(1, keepdims=True))
    cumulated = conditional.cumsum(axis=1)
    draws = rng.random((num_samples, 1, len(classes))) * cumulated[:, -1:]
    nodes = EFFECTS[(draws > cumulated).sum(axis=1)]
    effects[:, classes] = nodes + _jitter(rng, EFFECTS, nodes.shape)
    shifts = SHIFTS[shift] + _jitter(rng, SHIFTS, num_samples)
    return CorrectnessSamples(
        center=center,
        shift=shifts[:, None],
        slope=SLOPES[slope][:, None],
        effect=SPREADS[spread][:, None] * effects,
    )


def compute_log_likelihood(
    logits: np.ndarray, center: float, signs: np.ndarray, members: np.ndarray
) -> np.ndarray:
    """Compute the log-likelihood at all nodes of the grid.

    Args:
        logits (np.ndarray): Logits for labeled photos (n,), minus ``center``.
        center (float): Mean logit.
        signs (np.ndarray): 1 for a correct prediction, else -1, (n,).
        members (np.ndarray): 1 if a photo is predicted as a class (n, C).

    Returns:
        np.ndarray: Sum per class, by shift, slope, spread and effect, each
        on one axis, then class.
    """
    values = center + SHIFTS[:, None, None] + SLOPES[:, None] * logits
    effects = SPREADS[:, None] * EFFECTS
    values = values[:, :, None, None] + effects[:, :, None]
    return -np.logaddexp(0, -signs * values) @ members


def compute_log_prior(training_photos: int) -> np.ndarray:
    """Compute the log prior by shift, slope and spread.

    The shift has a mixture prior: new photos are like the training photos,
    up to the error in the cross-validation, or unlike them.
    """
    sd = np.sqrt(ALIKE_SD**2 + ALIKE_VARIANCE / max(training_photos, 1))
    alike = np.exp(-((SHIFTS / sd) ** 2) / 2) / sd
    deviation = (SHIFTS - UNLIKE_MEAN) / UNLIKE_SD
    unlike = np.exp(-(deviation**2) / 2) / UNLIKE_SD
    shift = np.log(ALIKE * alike + (1 - ALIKE) * unlike)
    slope = -(((SLOPES - SLOPE_MEAN) / SLOPE_SD) ** 2) / 2
    return shift[:, None, None] + slope[:, None] + np.log(SPREAD_PRIOR)


def _jitter(rng: np.random.Generator, nodes: np.ndarray, shape) -> np.ndarray:
    """Draw uniform deviations between equidistant nodes."""
    return (rng.random(shape) - 0.5) * (nodes[1] - nodes[0])
