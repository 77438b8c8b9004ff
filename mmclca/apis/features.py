# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features and class scores of image files, by a trained classifier."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mmclca.datasets.photographs import LabeledImages
from mmclca.models.classifiers import STAGES, feature_of
from mmclca.utils.files import read_bytes, replace_bytes
from mmclca.utils.messages import one_of, warn

from .inferencer import TokenReductionInferencer, check_finite

# outputs of readable images, and reasons by position of unreadable ones
Outputs = tuple[Tensor, dict[int, str]]


def extract_features(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    stage: str = 'pre_logits',
    batch_size: int = 32,
) -> Outputs:
    """Compute one feature per image.

    Args:
        inferencer (TokenReductionInferencer): The classifier.
        paths (Sequence[str]): Image files.
        stage (str): 'pre_logits' for what the last layer of the head reads:
            the aggregated features of CLA, or the last CLS without it;
            'backbone' for the last CLS in any case. Defaults to 'pre_logits'.
        batch_size (int): Images at a time. Defaults to 32.

    Returns:
        tuple[Tensor, dict[int, str]]: Features (N, C) of the images that can
        be read, and by position why others cannot.

    Raises:
        ValueError: If no image can be read, or features are not finite.
    """
    one_of(STAGES, stage=stage)
    feature = partial(feature_of, inferencer.model, stage=stage)
    return _readable_outputs(inferencer, paths, feature, batch_size)


def extract_logits(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    batch_size: int = 32,
) -> Outputs:
    """Class scores of images before softmax.

    Args:
        inferencer (TokenReductionInferencer): The classifier.
        paths (Sequence[str]): Image files.
        batch_size (int): Images at a time. Defaults to 32.

    Returns:
        tuple[Tensor, dict[int, str]]: As of :func:`extract_features`, with
        scores (N, classes).
    """
    return _readable_outputs(inferencer, paths, inferencer.model, batch_size)


def _readable_outputs(inferencer, paths, function, batch_size):
    found, unread = outputs_of(inferencer, paths, function, batch_size)
    require_readable(paths, unread)
    return found, unread


def outputs_of(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    function: Callable[[Tensor], Tensor],
    batch_size: int,
) -> Outputs:
    """Join the batches of :func:`feature_batches`."""
    found, unread = [], {}
    batches = feature_batches(inferencer, paths, function, batch_size)
    for features, reasons in batches:
        unread |= reasons
        found.append(features)
    return torch.cat(found), unread


@torch.no_grad()
def feature_batches(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    function: Callable[[Tensor], Tensor],
    batch_size: int,
    zoom: float = 1.0,
) -> Iterator[Outputs]:
    """Yield what a function of the model makes of images, batch by batch.

    Features (n, C) of the images that can be read, on the CPU, and by
    position why others cannot.

    Raises:
        ValueError: If features are not finite.
    """
    for batch in inferencer.batches(paths, batch_size, zoom):
        found = torch.empty(0)
        if batch.images is not None:
            found = function(batch.images).flatten(1).float().cpu()
            check_finite(found)
        yield found, batch.unread


def require_readable(paths: Sequence[str], unread: dict[int, str]) -> None:
    """Raise a ValueError with the reasons if no image can be read."""
    if len(unread) == len(paths):
        reasons = '; '.join(sorted(set(unread.values())))
        raise ValueError(f'none of {len(paths)} images can be read: {reasons}')


def drop_unreadable(
    images: LabeledImages, unread: dict[int, str]
) -> LabeledImages:
    """Drop unreadable images, and print each with the reason to stderr.

    Args:
        images (LabeledImages): All images.
        unread (dict[int, str]): Reason by position of unreadable images.
    """
    for position, reason in unread.items():
        warn(f'cannot read {images.paths[position]}: {reason}')
    return images.select([i for i in range(len(images)) if i not in unread])


class FeatureCache(dict):
    """Features of one model by the contents of image files.

    A file of the folder holds those of a batch and is written in one step:
    what was interrupted goes on from there, and several processes may use
    one folder.

    Args:
        folder (str | Path, optional): Where to keep them, in a folder of
            each model. None: in memory alone.
        model (str): What identifies the model, see
            :func:`mmclca.evaluation.open_set.model_digest`.
        width (int): Number of channels of the features.

    Raises:
        ValueError: If features in the folder are not finite.
    """

    def __init__(self, folder: str | Path | None, model: str, width: int):
        super().__init__()
        self._width = width
        self._folder = None if folder is None else Path(folder, model)
        if self._folder is not None:
            for part in sorted(self._folder.glob('*.safetensors')):
                self._read(part)

    def add(self, digests: list[str], features: Tensor) -> None:
        """Keep the features (N, D) of image files, see ``digest_of_file``."""
        self.update(zip(digests, features, strict=True))
        if self._folder is None or not digests:
            return
        facts = dict(digests=json.dumps(digests))
        name = sha256(facts['digests'].encode()).hexdigest()[:16]
        content = save(dict(features=features), facts)
        replace_bytes(self._folder / f'{name}.safetensors', content, False)

    def _read(self, part: Path) -> None:
        try:
            with safe_open(part, 'pt') as file:
                digests = json.loads(file.metadata()['digests'])
                features = file.get_tensor('features')
            if features.shape != (len(digests), self._width):
                raise ValueError(f'features of shape {features.shape}')
        except (KeyError, SafetensorError, TypeError, ValueError):
            return  # not a valid part: compute its features again
        if not features.isfinite().all():
            raise ValueError(f'{part} contains NaN or infinity; remove it')
        self.update(zip(digests, features, strict=True))


def digest_of_file(path: str) -> str | None:
    """SHA-256 of a file, None where it cannot be read."""
    try:
        return sha256(read_bytes(path)).hexdigest()
    except OSError:
        return None
