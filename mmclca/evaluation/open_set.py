# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Detect images of unknown classes by a score threshold.

Scores are high for known classes, and known images are the positive class.
Images with a score below the threshold of the model are flagged as unknown.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from mmengine.model import BaseModel
from torch import Tensor, nn

from mmclca.checkpoints import checksums, digests
from mmclca.checkpoints.earlier_versions import restore_config
from mmclca.checkpoints.gate.json_parsing import load_json_object, parse_record
from mmclca.checkpoints.gate.settings import without_training
from mmclca.datasets.batches import without_cache
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.errors import Error
from mmclca.models.heads import NearestHead
from mmclca.utils.files import replace_text
from mmclca.utils.messages import check_choice

from .accuracy import clopper_pearson


def max_softmax(logits: Tensor) -> Tensor:
    """Largest class probability (N,) for logits (N, classes).

    Hendrycks & Gimpel, `A Baseline for Detecting Misclassified and
    Out-of-Distribution Examples in Neural Networks
    <https://arxiv.org/abs/1610.02136>`_ (2017), section 2.
    """
    return logits.softmax(dim=-1).amax(dim=-1)


def energy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Negative free energy (N,) for logits: T logsumexp(logits / T).

    Liu et al., `Energy-based Out-of-distribution Detection
    <https://arxiv.org/abs/2010.03759>`_ (2020), equations 4 and 7.
    """
    return temperature * (logits / temperature).logsumexp(dim=-1)


# scores computed from logits
SCORES = dict(max_softmax=max_softmax, energy=energy)
NEAREST = 'nearest'  # from NearestHead.nearest
SIMILARITIES = 'similarities'  # from NearestHead.similarities


def list_scores(head: nn.Module) -> tuple[str, ...]:
    """Score names provided by a head, default first."""
    return (NEAREST, *SCORES) if isinstance(head, NearestHead) else (*SCORES,)


def auroc(known_scores: Tensor, unknown_scores: Tensor) -> float:
    """Area under the ROC curve of known (N,) against unknown (M,) scores.

    The probability that a known image scores higher than an unknown one; ties
    count half. Raises an Error for an empty tensor or NaN.
    """
    _check(known=known_scores, unknown=unknown_scores)
    ordered = unknown_scores.sort().values
    lower = torch.searchsorted(ordered, known_scores)
    not_higher = torch.searchsorted(ordered, known_scores, right=True)
    wins = (lower + not_higher).double() / 2
    return float(wins.mean() / len(unknown_scores))


def false_positive_rate(
    known_scores: Tensor, unknown_scores: Tensor, tpr: float = 0.95
) -> float:
    """Share of unknown images accepted at true-positive rate ``tpr``.

    Raises an Error for an empty tensor, NaN, or a rate outside 0 to 1.
    """
    _check(unknown=unknown_scores)
    threshold = fit_threshold(known_scores, tpr)
    return float((unknown_scores >= threshold).double().mean())


def fit_threshold(known_scores: Tensor, accept: float = 0.95) -> float:
    """Highest threshold that accepts at least a share of known images.

    Images with a score equal to the threshold are accepted. Raises a
    Error without scores, for NaN, or for a share outside 0 (exclusive) to
    1.
    """
    _check(known=known_scores)
    if not 0 < accept <= 1:
        raise Error(f'accept={accept}: expected above 0, at most 1')
    # 0.95 of 20 images are 19, but the float product can be slightly larger
    count = math.ceil(accept * len(known_scores) - 1e-9)
    descending = known_scores.sort(descending=True).values
    return float(descending[max(count, 1) - 1])


def threshold_by_folds(
    scores: Tensor,
    groups: Sequence | None = None,
    folds: int = 5,
    accept: float = 0.95,
) -> dict:
    """Fit a threshold, and cross-validate its false-alarm rate.

    Each fold uses the threshold of the other folds. ``scores`` (S, N) are S
    per image of a known class, NaN if missing; ``groups`` (N,) stay in one
    fold.

    Returns ``threshold``; ``accept``; ``images``, the number with a score;
    ``false_alarms``, the rate, and its 95% interval, ``low`` to ``high``, see
    :func:`estimate_false_alarm_interval`. Empty for fewer than two images or
    groups.
    """
    scored = torch.where(~scores.isnan().all(0))[0].tolist()
    scores = scores[:, scored]
    groups = groups and [groups[i] for i in scored]
    splits = GroupedSplits(np.zeros(len(scored), int), groups)
    if not splits.tested:
        return {}
    flagged = scores.clone()
    for train, test in splits.folds(folds, seed=0):
        threshold = fit_threshold(_without_nan(scores[:, train]), accept)
        flagged[:, test] = scores[:, test].lt(threshold).to(scores)
    share = float(flagged[~scores.isnan()].mean())
    low, high = estimate_false_alarm_interval(share, splits.tested, folds)
    return dict(
        threshold=fit_threshold(_without_nan(scores), accept),
        accept=accept,
        images=len(scored),
        false_alarms=share,
        low=low,
        high=high,
    )


def estimate_false_alarm_interval(
    share: float, independent: int, folds: int
) -> tuple[float, float]:
    """Return the 95% interval of a cross-validated false-alarm rate.

    The rate of new images varies with the threshold, too, which is set on the
    same images. The interval is exact, see
    :func:`mmclca.evaluation.clopper_pearson`, and each image or group counts
    half, because folds overlap, as in
    :func:`mmclca.evaluation.estimate_accuracy_interval`. In each fold, images
    are compared with fewer references, which raises the rate. So the lower
    bound is reduced as if the rate fell in proportion to their number.

    Args:
        share (float): Cross-validated rate, 0 to 1.
        independent (int): Number of tested images, or groups.
        folds (int): Number of folds.
    """
    low, high = clopper_pearson(share, independent / 2)
    return low * (folds - 1) / folds, high


def _without_nan(scores: Tensor) -> Tensor:
    return scores[~scores.isnan()]


def _check(**scores: Tensor) -> None:
    """Raise an Error without scores, or for NaN."""
    for name, values in scores.items():
        if len(values) == 0:
            raise Error(f'{name} images: found 0, at least 1 is needed')
        if values.isnan().any():
            raise Error(
                f'scores of {name} images: {int(values.isnan().sum())} of '
                f'{len(values)} are NaN: damaged weights or diverged training'
            )


@dataclass(frozen=True)
class Threshold:
    """Score threshold below which an image is flagged as unknown.

    ``model`` is its :func:`fingerprint`. Raises an Error if the score name
    is unknown or the threshold is not a finite number.
    """

    score: str
    threshold: float
    model: str

    def __post_init__(self):
        check_choice((*SCORES, NEAREST), score=self.score)
        is_number = isinstance(self.threshold, int | float)
        if not is_number or not abs(self.threshold) < math.inf:
            raise Error(f'threshold={self.threshold!r} is not finite')


def fingerprint(model: BaseModel) -> str:
    """Digest a trained model at its keep rate, 16 hexadecimal digits.

    It covers weights, backbone settings and image preparation.
    """
    backbone = model._config.model.backbone.to_dict()
    settings = dict(backbone=backbone, **image_settings(model))
    return model_digest(settings, model.state_dict())


def image_settings(model: BaseModel) -> dict:
    """Image preparation: ``preprocessor`` and ``pipeline``."""
    config = model._config.to_dict()
    pipeline = config['test_dataloader']['dataset']['pipeline']
    return dict(
        preprocessor=config['model'].get('data_preprocessor'),
        pipeline=without_cache(pipeline),
    )


def model_digest(settings: dict, weights: dict[str, Tensor]) -> str:
    """Digest weights and settings, without settings for training.

    Names that have changed since the first version do not change it.
    """
    settings = restore_config(without_training(settings))
    return digests.digest(settings, weights)


def write_threshold(
    path: str | PathLike,
    model: BaseModel,
    score: str,
    threshold: float,
    **notes,
) -> None:
    """Write the threshold of a model as JSON, with ``notes`` for readers."""
    content = asdict(Threshold(score, threshold, fingerprint(model))) | notes
    written = json.dumps(
        checksums.add_checksum(content), indent=1, ensure_ascii=False
    )
    replace_text(Path(path), f'{written}\n')


def read_threshold(path: str | PathLike, model: BaseModel) -> Threshold:
    """Read the threshold of a model.

    Raises a FileNotFoundError without the file, and an Error if it is
    invalid or belongs to another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'{path} not found: run tools/open_set.py')
    try:
        content = load_json_object(path.read_bytes())
        names = content.keys() & {field.name for field in fields(Threshold)}
        settings = {name: content[name] for name in names}  # without notes
        threshold = parse_record(Threshold, settings)
    except Error as error:
        raise Error(f'{path}: {error}; run tools/open_set.py') from error
    if threshold.model != fingerprint(model):
        raise Error(
            f'{path} belongs to another model or keep rate: run '
            'tools/open_set.py for this model'
        )
    check_choice(list_scores(model.head), score=threshold.score)
    return threshold


@contextmanager
def recording_scores(
    head: nn.Module, names: Sequence[str], references: Tensor | None = None
) -> Iterator[list[dict[str, Tensor]]]:
    """Record the named scores in each forward pass of a head.

    Args:
        head (nn.Module): The head.
        names (Sequence[str]): Names, see :func:`list_scores`.
        references (Tensor, optional): Positions of the R references of a
            :class:`NearestHead` with which images are compared. Defaults to
            None: no reference.

    Yields:
        list[dict[str, Tensor]]: A dict per pass: scores (B,) by name, and
        ``similarities`` (B, R) to the references.
    """
    recorded: list[dict[str, Tensor]] = []

    def score(name: str, feats, logits: Tensor) -> Tensor:
        if name == NEAREST and isinstance(head, NearestHead):
            return head.nearest(feats).cpu()
        return SCORES[name](logits.float()).cpu()

    def record(_, inputs: tuple, logits: Tensor) -> None:
        (feats,) = inputs
        scores = {name: score(name, feats, logits) for name in names}
        if references is not None:
            similarities = head.similarities(feats, references)
            scores[SIMILARITIES] = similarities.cpu()
        recorded.append(scores)

    with head.register_forward_hook(record):
        yield recorded


def set_known(
    samples: list, scores: dict[str, Tensor], threshold: Threshold
) -> None:
    """Set ``known_score`` and ``known`` of predictions by a threshold."""
    known_scores = scores[threshold.score].tolist()
    for sample, score in zip(samples, known_scores, strict=True):
        sample.set_field(score, 'known_score')
        sample.set_field(score >= threshold.threshold, 'known')
