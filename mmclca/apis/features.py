# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features and class scores of image files, and a cache for features."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from mmclca.checkpoints import checksums
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.models.classifiers import FEATURES, extract_feature
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import check_choice, warn

from .inferencer import TokenReductionInferencer, check_finite, show_inference

# outputs of readable images, and the reason for each unreadable position
Outputs = tuple[Tensor, dict[int, str]]


def extract_features(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    feature: str = 'pre_logits',
    batch_size: int = 32,
) -> Outputs:
    """Extract one feature per image.

    ``feature`` is 'pre_logits' (the input features of the classifier: the
    aggregated CLA features, or the last CLS token without CLA) or 'backbone'
    (always the last CLS token).

    Returns features (N, C) of the readable images, and the reason for each
    unreadable image by position.

    Raises an Error if no image is readable or features are not finite.
    """
    check_choice(FEATURES, feature=feature)
    extract = partial(extract_feature, inferencer.model, feature=feature)
    outputs = extract_outputs(inferencer, paths, extract, batch_size)
    require_readable(paths, outputs[1])
    return outputs


def extract_logits(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    batch_size: int = 32,
) -> Outputs:
    """Compute class scores (N, classes) before softmax.

    Returns and raises like :func:`extract_features`.
    """
    outputs = extract_outputs(inferencer, paths, inferencer.model, batch_size)
    require_readable(paths, outputs[1])
    return outputs


def extract_outputs(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    function: Callable[[Tensor], Tensor],
    batch_size: int,
) -> Outputs:
    """Concatenate the batches of :func:`feature_batches`."""
    features: list[Tensor] = []
    unread: dict[int, str] = {}
    for batch, reasons in feature_batches(
        inferencer, paths, function, batch_size
    ):
        unread |= reasons
        features.append(batch)
    return torch.cat(features), unread


@torch.no_grad()
def feature_batches(
    inferencer: TokenReductionInferencer,
    paths: Sequence[str],
    function: Callable[[Tensor], Tensor],
    batch_size: int,
    zoom: float = 1.0,
    progress: Callable = show_inference,
) -> Iterator[Outputs]:
    """Apply a function to images, and yield its outputs batch by batch.

    Each batch has the features (n, C) of its readable images, on the CPU, and
    the reason for each unreadable image by position. Raises an Error if
    features are not finite.
    """
    for batch in inferencer.batches(paths, batch_size, zoom, progress):
        features = torch.empty(0)
        if batch.images is not None:
            features = function(batch.images).flatten(1).float().cpu()
            check_finite(features)
        yield features, batch.unread


def require_readable(paths: Sequence[str], unread: dict[int, str]) -> None:
    """Raise an Error with the reasons if no image is readable."""
    if len(unread) == len(paths):
        reasons = '; '.join(sorted(set(unread.values())))
        raise Error(f'none of {len(paths)} images can be read: {reasons}')


def drop_unreadable(
    images: LabeledImages, unread: dict[int, str]
) -> LabeledImages:
    """Drop unreadable images, and print each with the reason to stderr."""
    for position, reason in unread.items():
        warn(f'cannot read {images.paths[position]}: {reason}')
    return images.select([i for i in range(len(images)) if i not in unread])


class FeatureCache(dict):
    """Features (D,) from one model, by the SHA-256 of the image file.

    Each batch is written to its own file in one step. Interrupted runs resume,
    and several processes can share the folder. Without a folder, features stay
    in memory. ``model`` identifies the model (see
    :func:`mmclca.evaluation.open_set.model_digest`), ``width`` is the number
    of channels. Raises an Error if cached features are not finite.
    """

    def __init__(self, folder: str | PathLike | None, model: str, width: int):
        super().__init__()
        self._width = width
        self._folder = None if folder is None else Path(folder, model)
        if self._folder is not None:
            for part in sorted(self._folder.glob('*.safetensors')):
                self._read(part)

    def add(self, digests: list[str], features: Tensor) -> None:
        """Store the features (N, D) of files by their SHA-256."""
        self.update(zip(digests, features, strict=True))
        if self._folder is None or not digests:
            return
        listing = json.dumps(digests)
        name = sha256(listing.encode()).hexdigest()[:16]
        content = checksums.save_tensors(
            dict(features=features), dict(digests=listing)
        )
        replace_bytes(self._folder / f'{name}.safetensors', content, False)

    def _read(self, part: Path) -> None:
        try:
            tensors, metadata = checksums.load_tensors(part.read_bytes())
            digests = json.loads(metadata.get('digests', ''))
        except (RecursionError, SafetensorError, ValueError):
            return  # damaged file: its features are computed again
        features = tensors.get('features')
        if not isinstance(digests, list) or features is None:
            return
        if not all(isinstance(digest, str) for digest in digests):
            return
        if features.shape != (len(digests), self._width):
            return
        if features.dtype != torch.float32:
            return
        if not features.isfinite().all():
            raise Error(f'{part} contains NaN or infinity; remove it')
        self.update(zip(digests, features, strict=True))
