# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that others are looked up in, by their features."""

import json
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.models.retrievers import (
    cosine_similarity,
    hide_same_files,
    positions_of,
)
from mmclca.utils.atomic_write import replace_file

from .labelled_images import LabelledImages


@dataclass
class Gallery:
    """Images that others are looked up in.

    Args:
        images (LabelledImages): The images.
        features (Tensor): Their features (M, C).
        model (str): ``fingerprint`` of the model that made them.
        stage (str): Where it made them, see ``extract_features``.

    Raises:
        ValueError: If there is no image, or not one feature for each, or if
            features are not finite.
    """

    images: LabelledImages
    features: Tensor
    model: str
    stage: str

    def __post_init__(self):
        number = len(self.images.paths)
        if number == 0:
            raise ValueError('the gallery is empty')
        if self.features.dim() != 2 or len(self.features) != number:
            raise ValueError(
                f'features of shape {tuple(self.features.shape)} are not one '
                f'for each of {number} gallery images'
            )
        if not self.features.isfinite().all():
            raise ValueError('features of the gallery are not finite')

    def similarity(self, paths: list[str], features: Tensor) -> Tensor:
        """Cosines between queries and the gallery.

        Args:
            paths (list[str]): Files of the queries.
            features (Tensor): Their features (N, C).

        Returns:
            Tensor: (N, M), minus infinity where both are the same file.

        Raises:
            ValueError: If features are of another size than the gallery's.
        """
        if features.shape[1] != self.features.shape[1]:
            raise ValueError(
                f'queries have features of {features.shape[1]} channels, the '
                f'gallery of {self.features.shape[1]}: make both with the '
                'same model and stage'
            )
        similarity = cosine_similarity(features, self.features)
        positions = positions_of(self.images.paths)
        hide_same_files(similarity, paths, positions)
        return similarity


def write_gallery(gallery: Gallery, path: str | PathLike) -> None:
    """Write a gallery, to be used again.

    Args:
        gallery (Gallery): The gallery. Of its images paths are written.
        path (str | Path): A ``.safetensors`` file; its folder is made.
    """
    images = gallery.images
    facts = dict(
        paths=json.dumps([os.path.abspath(path) for path in images.paths]),
        names=json.dumps(images.names),
        source=images.source,
        model=gallery.model,
        stage=gallery.stage,
    )
    features = dict(features=gallery.features.contiguous())
    replace_file(Path(path), lambda part: save_file(features, part, facts))


def read_gallery(path: str | PathLike, model: str, stage: str) -> Gallery:
    """Read a gallery of :func:`write_gallery`.

    Args:
        path (str | Path): The file.
        model (str): ``fingerprint`` of the model that it must be of.
        stage (str): Where features must be from.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no gallery, or of another model or stage.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'there is no gallery {path}')
    try:
        with safe_open(path, 'pt') as file:
            facts, features = file.metadata(), file.get_tensor('features')
        images = LabelledImages(
            json.loads(facts['paths']),
            json.loads(facts['names']),
            facts['source'],
        )
        found = Gallery(images, features, facts['model'], facts['stage'])
        _check_local(images.paths)
    except (KeyError, SafetensorError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path} is no gallery ({error}); retrieval.py --save-index '
            'writes one'
        ) from error
    if (found.model, found.stage) != (model, stage):
        raise ValueError(
            f'{path} is of another model, keep rate or stage (its stage is '
            f'{found.stage!r}): features are not comparable; write it anew '
            'with this one'
        )
    return found


def _check_local(paths: list[str]) -> None:
    """Refuse addresses: a file of someone else has nothing fetched."""
    for path in paths:
        if '://' in path:
            raise ValueError(f'it names {path}, no file of this machine')
