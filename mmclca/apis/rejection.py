# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""The score below which an image is of no known class, as a file."""

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from torch import Tensor, nn

from mmclca.checkpoints.allowed_settings import without_training
from mmclca.datasets.batches import without_cache
from mmclca.evaluation.open_set import SCORES
from mmclca.utils.atomic_write import replace_text


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
        if self.score not in SCORES:
            raise ValueError(
                f'score {self.score!r} is not one of {", ".join(SCORES)}'
            )
        number = isinstance(self.threshold, int | float)
        if not number or not math.isfinite(self.threshold):
            raise ValueError(f'threshold {self.threshold!r} is no number')

    def scores(self, logits: Tensor) -> Tensor:
        """Scores (N,) of class scores before softmax (N, classes)."""
        return SCORES[self.score](logits.float())


def fingerprint(model: nn.Module) -> str:
    """What tells a trained model, at its keep rate, from others.

    Returns:
        str: SHA-256 of all weights, the settings of the backbone and how
        images are prepared, the first 16 hexadecimal digits.
    """
    backbone = model._config.model.backbone.to_dict()
    settings = dict(backbone=backbone, **image_settings(model))
    return digest(settings, model.state_dict())


def image_settings(model: nn.Module) -> dict:
    """How images are prepared for a model: ``preprocessor``, ``pipeline``."""
    config = model._config.to_dict()
    pipeline = config['test_dataloader']['dataset']['pipeline']
    return dict(
        preprocessor=config['model'].get('data_preprocessor'),
        pipeline=without_cache(pipeline),
    )


def digest(settings: dict, weights: dict[str, Tensor]) -> str:
    """SHA-256 of settings and weights, the first 16 hexadecimal digits."""
    settings = without_training(settings)  # as out of a checkpoint
    text = json.dumps(settings, sort_keys=True, default=str)
    found = hashlib.sha256(text.encode())
    for name, tensor in sorted(weights.items()):
        found.update(name.encode())
        found.update(tensor.detach().cpu().float().numpy().tobytes())
    return found.hexdigest()[:16]


def write_threshold(
    threshold: Threshold, path: str | PathLike, **notes
) -> None:
    """Write a threshold as JSON.

    Args:
        threshold (Threshold): The threshold.
        path (str | Path): The file; its folder is made.
        **notes: What else is to stand in it, for people.
    """
    text = json.dumps(asdict(threshold) | notes, indent=1, ensure_ascii=False)
    replace_text(Path(path), f'{text}\n')


def read_threshold(path: str | PathLike, model: nn.Module) -> Threshold:
    """Read the threshold of a model.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no threshold, or that of another model.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f'there is no threshold {path}: tools/open_set.py writes one'
        )
    names = tuple(Threshold.__dataclass_fields__)
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
        threshold = Threshold(*(found[name] for name in names))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path} is no threshold with {", ".join(names)} '
            f'({type(error).__name__}: {error}); tools/open_set.py writes one'
        ) from error
    if threshold.model != fingerprint(model):
        raise ValueError(
            f'{path} is the threshold of another model, or of another keep '
            'rate: its scores are not comparable; fit one to this model with '
            'tools/open_set.py'
        )
    return threshold


@contextmanager
def noting_logits(head: nn.Module) -> Iterator[list[Tensor]]:
    """Note the class scores that a head gives, before softmax.

    Yields:
        list[Tensor]: Filled by each pass.
    """
    seen = []
    with head.register_forward_hook(lambda _, __, out: seen.append(out)):
        yield seen


def note_known(samples: list, logits: Tensor, threshold: Threshold) -> None:
    """Give predictions ``known_score`` and ``known``.

    Args:
        samples (list[DataSample]): Predictions.
        logits (Tensor): Their class scores before softmax, (N, classes).
        threshold (Threshold): Tells which are known.
    """
    scores = threshold.scores(logits)
    for sample, score in zip(samples, scores.tolist(), strict=True):
        sample.set_field(score, 'known_score')
        sample.set_field(score >= threshold.threshold, 'known')
