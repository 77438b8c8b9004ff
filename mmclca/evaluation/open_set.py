# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tell images of known classes from those of unknown ones.

Scores are high for what is known. Known images are the positive ones. The
threshold of a model, a score below which an image is of no known class, is
stored beside it.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

import torch
from torch import Tensor, nn

from mmclca.checkpoints import identity
from mmclca.checkpoints.plain_config import without_training
from mmclca.datasets.batches import without_cache
from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.models.heads import NearestHead
from mmclca.utils.files import replace_text
from mmclca.utils.messages import one_of

from .accuracy import wilson


def max_softmax(logits: Tensor) -> Tensor:
    """Return the largest class probability.

    Hendrycks & Gimpel, `A Baseline for Detecting Misclassified and
    Out-of-Distribution Examples in Neural Networks
    <https://arxiv.org/abs/1610.02136>`_ (2017), section 2.

    Args:
        logits (Tensor): Class scores before softmax, (N, classes).

    Returns:
        Tensor: (N,), in 0 to 1.
    """
    return logits.softmax(dim=-1).amax(dim=-1)


def energy(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Return the negative free energy, T logsumexp(logits / T).

    Liu et al., `Energy-based Out-of-distribution Detection
    <https://arxiv.org/abs/2010.03759>`_ (2020), equations 4 and 7.

    Args:
        logits (Tensor): Class scores before softmax, (N, classes).
        temperature (float): T. Defaults to 1.

    Returns:
        Tensor: (N,).
    """
    return temperature * (logits / temperature).logsumexp(dim=-1)


# of class scores
SCORES = dict(max_softmax=max_softmax, energy=energy)
NEAREST = 'nearest'  # NearestHead.nearest of a head


def scores_of(head: nn.Module) -> tuple[str, ...]:
    """Names of the scores that a head gives, the one to prefer first."""
    return (NEAREST, *SCORES) if isinstance(head, NearestHead) else (*SCORES,)


def auroc(known: Tensor, unknown: Tensor) -> float:
    """Area under the curve of true over false positive rate.

    How often a known image has a higher score than an unknown one; ties
    count half.

    Args:
        known (Tensor): Scores of known images (N,).
        unknown (Tensor): Scores of unknown images (M,).

    Raises:
        ValueError: If one is empty or has NaN.
    """
    _check(known=known, unknown=unknown)
    ordered = unknown.sort().values
    lower = torch.searchsorted(ordered, known)
    not_higher = torch.searchsorted(ordered, known, right=True)
    wins = (lower + not_higher).double() / 2
    return float(wins.mean() / len(unknown))


def false_positive_rate(
    known: Tensor, unknown: Tensor, tpr: float = 0.95
) -> float:
    """Return the share of unknown images accepted where ``tpr`` of known ones
    are.

    Args:
        known (Tensor): Scores of known images (N,).
        unknown (Tensor): Scores of unknown images (M,).
        tpr (float): Share of known images, at least. Defaults to 0.95.

    Raises:
        ValueError: If one is empty or has NaN, or ``tpr`` is out of range.
    """
    _check(unknown=unknown)
    return float((unknown >= fit_threshold(known, tpr)).double().mean())


def fit_threshold(known: Tensor, accept: float = 0.95) -> float:
    """Return the highest threshold that accepts a share of known images.

    An image is accepted if its score is not below.

    Args:
        known (Tensor): Scores of known images (N,).
        accept (float): Share to accept, at least; above 0, 1 is all.
            Defaults to 0.95.

    Raises:
        ValueError: If there is no score or a NaN, or the share is out of
            range.
    """
    _check(known=known)
    if not 0 < accept <= 1:
        raise ValueError(f'accept={accept}: expected above 0, at most 1')
    # of 20 images 0.95 are 19; the product may be a little more in floats
    count = math.ceil(accept * len(known) - 1e-9)
    return float(known.sort(descending=True).values[max(count, 1) - 1])


def threshold_by_folds(
    known: Tensor,
    groups: Sequence | None = None,
    folds: int = 5,
    accept: float = 0.95,
) -> dict:
    """Fit a threshold, and estimate the share of known images it rejects.

    By folds: each image is judged by the threshold of the others.

    Args:
        known (Tensor): S scores of N known images (S, N), NaN where there is
            none.
        groups (Sequence, optional): Of the images (N,); one group is in one
            fold. Defaults to None: each another one.
        folds (int): Into how many parts to cut them. Defaults to 5.
        accept (float): See :func:`fit_threshold`. Defaults to 0.95.

    Returns:
        dict: ``threshold``; ``accept``; ``images``, how many have a score;
        ``false_alarms``, the share, and its 95 % Wilson interval, ``low`` to
        ``high``. Empty where fewer than two, or two groups, have any.
    """
    scored = torch.where(~known.isnan().all(0))[0].tolist()
    known, groups = known[:, scored], groups and [groups[i] for i in scored]
    one_class = torch.zeros(len(scored), dtype=torch.long)
    units, rejected = GroupedSplits(one_class, groups), known.clone()
    if not units.tested:
        return {}
    for rest, own in units.folds(folds, seed=0):
        cut = fit_threshold(_given(known[:, rest]), accept)
        rejected[:, own] = known[:, own].lt(cut).to(known)
    share = float(rejected[~known.isnan()].mean())
    low, high = wilson(share, units.tested)
    found = dict(threshold=fit_threshold(_given(known), accept))
    found.update(accept=accept, images=len(scored), false_alarms=share)
    return dict(found, low=low, high=high)


def _given(scores: Tensor) -> Tensor:
    return scores[~scores.isnan()]


def measure_scores(
    found: dict[str, dict[str, Tensor]], accept: float = 0.95
) -> list[dict[str, str | float]]:
    """Tell the threshold of each score, and how well it works.

    Args:
        found (dict[str, dict[str, Tensor]]): Scores (N,) by their names of
            ``known`` images, and to measure with of ``unknown`` and other
            known images, ``test``.
        accept (float): Share of known images to accept. Defaults to 0.95.
    """
    rows = []
    for name in found['known']:
        scores = {part: some[name] for part, some in found.items()}
        threshold = fit_threshold(scores['known'], accept)
        row = dict(score=name, threshold=threshold)
        if 'unknown' in scores:
            test, unknown = scores['test'], scores['unknown']
            row.update(
                auroc=auroc(test, unknown),
                fpr95=false_positive_rate(test, unknown),
                known_lost=_share(test < threshold),
                unknown_rejected=_share(unknown < threshold),
            )
        rows.append(row)
    return rows


def _share(flags: Tensor) -> float:
    return float(flags.double().mean())


def _check(**scores: Tensor) -> None:
    for name, values in scores.items():
        if len(values) == 0:
            raise ValueError(f'{name} images: found 0, at least 1 is needed')
        if values.isnan().any():
            raise ValueError(
                f'scores of {name} images: {int(values.isnan().sum())} of '
                f'{len(values)} are NaN: damaged weights or diverged training'
            )


@dataclass(frozen=True)
class Threshold:
    """Below which score an image is of no known class.

    Raises:
        ValueError: If the score has no such name or the threshold is not a
            finite number.
    """

    score: str
    threshold: float
    model: str

    def __post_init__(self):
        one_of((*SCORES, NEAREST), score=self.score)
        number = isinstance(self.threshold, int | float)
        if not number or not math.isfinite(self.threshold):
            raise ValueError(f'threshold={self.threshold!r} is not finite')


def fingerprint(model: nn.Module) -> str:
    """Digest what identifies a trained model, at its keep rate.

    Returns:
        str: SHA-256 of all weights, the settings of the backbone and how
        images are prepared, the first 16 hexadecimal digits.
    """
    backbone = model._config.model.backbone.to_dict()
    settings = dict(backbone=backbone, **image_settings(model))
    return model_digest(settings, model.state_dict())


def image_settings(model: nn.Module) -> dict:
    """Find how images are prepared: ``preprocessor`` and ``pipeline``."""
    config = model._config.to_dict()
    pipeline = config['test_dataloader']['dataset']['pipeline']
    return dict(
        preprocessor=config['model'].get('data_preprocessor'),
        pipeline=without_cache(pipeline),
    )


def model_digest(settings: dict, weights: dict[str, Tensor]) -> str:
    """Identify settings, as a checkpoint stores them, and weights."""
    return identity.digest(without_training(settings), weights)


def write_threshold(
    path: str | PathLike,
    model: nn.Module,
    score: str,
    threshold: float,
    **notes,
) -> None:
    """Write the threshold of a model as JSON.

    Args:
        path (str | Path): The file; its folder is made.
        model (nn.Module): The model.
        score (str): One of :func:`scores_of` its head.
        threshold (float): The threshold.
        **notes: What else is to stand in it, for people.
    """
    found = Threshold(score, threshold, fingerprint(model))
    text = json.dumps(asdict(found) | notes, indent=1, ensure_ascii=False)
    replace_text(Path(path), f'{text}\n')


def read_threshold(path: str | PathLike, model: nn.Module) -> Threshold:
    """Read the threshold of a model.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no threshold, or that of another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'{path} not found: run tools/open_set.py')
    names = tuple(Threshold.__dataclass_fields__)
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
        threshold = Threshold(*(found[name] for name in names))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path} lacks {", ".join(names)} ({type(error).__name__}: '
            f'{error}): run tools/open_set.py'
        ) from error
    if threshold.model != fingerprint(model):
        raise ValueError(
            f'{path} belongs to another model or keep rate: run '
            'tools/open_set.py for this model'
        )
    one_of(scores_of(model.head), score=threshold.score)
    return threshold


@contextmanager
def noting_scores(
    head: nn.Module, names: Sequence[str]
) -> Iterator[list[dict[str, Tensor]]]:
    """Note some of the scores that a head gives, see :func:`scores_of`.

    Yields:
        list[dict[str, Tensor]]: Filled by each pass, (B,) by name.
    """
    seen = []

    def score(name: str, feats, logits: Tensor) -> Tensor:
        if name == NEAREST:
            return head.nearest(feats).cpu()
        return SCORES[name](logits.float()).cpu()

    def note(_, given: tuple, logits: Tensor) -> None:
        seen.append({name: score(name, *given, logits) for name in names})

    with head.register_forward_hook(note):
        yield seen


def note_known(
    samples: list, scores: dict[str, Tensor], threshold: Threshold
) -> None:
    """Give predictions ``known_score`` and ``known``.

    Args:
        samples (list[DataSample]): Predictions.
        scores (dict[str, Tensor]): Their scores (N,) by name.
        threshold (Threshold): Tells which are known.
    """
    found = scores[threshold.score].tolist()
    for sample, score in zip(samples, found, strict=True):
        sample.set_field(score, 'known_score')
        sample.set_field(score >= threshold.threshold, 'known')
