# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Features of images and their views, each computed once."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike

import torch
from mmengine.model import BaseModel
from torch import Tensor

from mmclca.checkpoints.gate.photo_table import PhotoFiles, compute_sha256
from mmclca.errors import Error
from mmclca.models.classifiers import extract_feature
from mmclca.utils.messages import track

from ..features import FeatureCache, Outputs, feature_batches, require_readable
from ..inferencer import TokenReductionInferencer


@dataclass(frozen=True)
class PhotoView:
    """View of an image: its zoomed center, or the image after turns."""

    zoom: float = 1.0
    quarters: int = 0


@dataclass(frozen=True)
class ImageFile:
    """Image file and its SHA-256, None if it is unreadable."""

    path: str
    digest: str | None


@dataclass(frozen=True)
class ViewFeatures:
    """Features of images and their views, in one cache per view.

    Args:
        inferencer (TokenReductionInferencer): The model.
        caches (dict[PhotoView, FeatureCache]): Cache per view.
        photo_files (PhotoFiles): SHA-256 by path, if known, and whether to
            open each file. Closed files must be in the caches.
        batch_size (int): Images per batch.
    """

    inferencer: TokenReductionInferencer
    caches: dict[PhotoView, FeatureCache]
    photo_files: PhotoFiles
    batch_size: int

    def extract(
        self, paths: Sequence[str | PathLike], views: Sequence[PhotoView]
    ) -> Outputs:
        """Return the features (N, V, D) for some views.

        Missing features are computed, with a progress bar, and cached after
        each batch.

        Args:
            paths (Sequence[str | Path]): Image files.
            views (Sequence[PhotoView]): V keys of the caches.

        Returns:
            tuple[Tensor, dict[int, str]]: Features per readable image, and the
            reason for each unreadable image by position.

        Raises:
            Error: If no image is readable, features are not finite, or a file
                without features is closed or has changed.
        """
        images = self._find_digests(paths)
        unread: dict[int, str] = {}
        for view, batch in track(
            self._list_missing(images, views), 'Features'
        ):
            unread |= self._complete(images, batch, view)
        require_readable([image.path for image in images], unread)
        readable = [x for i, x in enumerate(images) if i not in unread]
        features = torch.stack(
            [self.caches[view][x.digest] for x in readable for view in views]
        )
        return features.unflatten(0, (-1, len(views))), unread

    def measure_share(self, paths: Sequence[str | PathLike]) -> float:
        """Return the share of features that are cached, 0 to 1."""
        images = self._find_digests(paths)
        is_cached = [
            image.digest in cache
            for image in images
            for cache in self.caches.values()
        ]
        return sum(is_cached) / len(is_cached)

    def _find_digests(
        self, paths: Sequence[str | PathLike]
    ) -> list[ImageFile]:
        known_digests = self.photo_files.sha256
        return [
            ImageFile(path, known_digests.get(path) or compute_sha256(path))
            for path in map(str, paths)
        ]

    def _list_missing(
        self, images: list[ImageFile], views: Sequence[PhotoView]
    ) -> list[tuple[PhotoView, list[int]]]:
        """Return batches of images without cached features, per view.

        Raises an Error if their files are closed or have changed.
        """
        batches = []
        for view in views:
            cache = self.caches[view]
            new = [i for i, x in enumerate(images) if x.digest not in cache]
            self._check_files([images[i].path for i in new])
            batches += [
                (view, new[start : start + self.batch_size])
                for start in range(0, len(new), self.batch_size)
            ]
        return batches

    def _check_files(self, paths: Sequence[str]) -> None:
        closed = [x for x in paths if not self.photo_files.may_open(x)]
        if closed:
            raise Error(
                f'features of {len(closed)} images are missing, such as '
                f'{closed[0]}; run fit again with `overwrite=True`'
            )
        # their features would be stored under the digest for other content
        changed = [x for x in paths if self.photo_files.is_changed(x)]
        if changed:
            raise Error(
                f'{len(changed)} photos have changed since the fit, or are '
                f'missing, such as {changed[0]}; restore them, or run fit '
                'again with `overwrite=True`'
            )

    def _complete(
        self, images: list[ImageFile], batch: list[int], view: PhotoView
    ) -> dict[int, str]:
        """Cache the features for a batch, given by positions.

        Return the reasons for unreadable images by position.
        """
        extract = partial(extract_turned, self.inferencer.model, view.quarters)
        ((features, reasons),) = feature_batches(
            self.inferencer,
            [images[i].path for i in batch],
            extract,
            self.batch_size,
            view.zoom,
            progress=iter,
        )
        unread = {batch[n]: reason for n, reason in reasons.items()}
        digests = [images[i].digest for i in batch if i not in unread]
        # readable images have a digest
        self.caches[view].add(digests, features)  # type: ignore[arg-type]
        return unread


def extract_turned(model: BaseModel, quarters: int, images: Tensor) -> Tensor:
    """Extract features of preprocessed images (B, 3, H, H) after turns."""
    if quarters:
        images = images.rot90(quarters, dims=(2, 3))
    return extract_feature(model, images, feature='pre_logits')
