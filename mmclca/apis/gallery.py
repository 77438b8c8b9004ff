# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Galleries: images with features, searched by cosine similarity."""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError
from torch import Tensor

from mmclca.checkpoints import checksums
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.models import retrievers
from mmclca.utils.files import replace_bytes


@dataclass
class Gallery:
    """Labeled images and their features (M, C), searched by similarity.

    ``model`` is the ``fingerprint`` of their model, ``feature`` their
    kind (see ``extract_features``).
    """

    images: LabeledImages
    features: Tensor
    model: str
    feature: str

    def similarity(self, paths: list[str], features: Tensor) -> Tensor:
        """Cosine similarity (N, M) of query features (N, C) to the gallery.

        It is minus infinity where the query and the gallery image are the same
        file.
        """
        similarity = retrievers.cosine_similarity(features, self.features)
        retrievers.hide_same_files(similarity, paths, self.files)
        return similarity

    @cached_property
    def files(self) -> Tensor:
        """Return file numbers (M,), see :func:`.files_of`."""
        return retrievers.files_of(self.images.paths)


def write_gallery(gallery: Gallery, path: str | PathLike) -> None:
    """Write a gallery as ``.safetensors``, with absolute image paths."""
    images = gallery.images
    facts = dict(
        paths=json.dumps([os.path.abspath(path) for path in images.paths]),
        names=json.dumps(images.names),
        source=images.source,
        model=gallery.model,
        stage=gallery.feature,  # a stage of mmpretrain's extract_feat
    )
    features = dict(features=gallery.features.contiguous())
    replace_bytes(Path(path), checksums.save_tensors(features, facts))


def read_gallery(path: str | PathLike, model: str, feature: str) -> Gallery:
    """Read a gallery written by :func:`write_gallery`.

    Raises an Error if the file is not a gallery, or if its features come
    from another model or layer.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'gallery {path} does not exist')
    try:
        tensors, facts = checksums.load_tensors(path.read_bytes())
        features = tensors['features']
        paths, names = (json.loads(facts[x]) for x in ('paths', 'names'))
        images = LabeledImages.from_names(paths, names, facts['source'])
        found = Gallery(images, features, facts['model'], facts['stage'])
        _check_file(found)
    except (KeyError, SafetensorError, TypeError, ValueError) as error:
        raise Error(
            f'{path} is not a gallery ({error}); create one with retrieval.py '
            '--save-index'
        ) from error
    if (found.model, found.feature) != (model, feature):
        raise Error(
            f'{path} was written with another model, keep rate or feature '
            f'({found.feature!r}, expected {feature!r}); write it '
            'again with this model'
        )
    return found


def _check_file(gallery: Gallery) -> None:
    """Refuse invalid features, and URLs: nothing is downloaded."""
    paths, features = gallery.images.paths, gallery.features
    shape = len(paths), features[0].numel() if len(features) else 0
    if 0 in shape or features.shape != shape:
        raise Error(f'{len(paths)} images, but features {features.shape}')
    if not torch.stack(features.aminmax()).isfinite().all():
        raise Error('features are not finite')
    if not features.is_floating_point():
        raise Error(f'features are {features.dtype}, expected floats')
    for path in paths:
        if '://' in str(path) or not isinstance(path, str):
            raise Error(f'{path} is not a local path')
