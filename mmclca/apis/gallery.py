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
    metadata = dict(
        paths=json.dumps([os.path.abspath(path) for path in images.paths]),
        names=json.dumps(images.names),
        source=images.source,
        model=gallery.model,
        stage=gallery.feature,  # a stage of mmpretrain's extract_feat
    )
    features = dict(features=gallery.features.contiguous())
    replace_bytes(Path(path), checksums.save_tensors(features, metadata))


def read_gallery(path: str | PathLike, model: str, feature: str) -> Gallery:
    """Read a gallery written by :func:`write_gallery`.

    Raises an Error if the file is not a gallery, or if its features come
    from another model or layer.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'gallery {path} does not exist')
    try:
        gallery = _parse_gallery(path.read_bytes())
    except (Error, SafetensorError) as error:
        raise Error(
            f'{path} is not a gallery ({error}); create one with retrieval.py '
            '`save_index`'
        ) from error
    if (gallery.model, gallery.feature) != (model, feature):
        raise Error(
            f'{path} was written with another model, keep rate or feature '
            f'({gallery.feature!r}, expected {feature!r}); write it again '
            'with this model'
        )
    return gallery


def _parse_gallery(content: bytes) -> Gallery:
    """Parse the content of a gallery file.

    URLs are refused, so nothing is downloaded.

    Raises:
        SafetensorError: If the file has another format.
        Error: If a part is missing or invalid.
    """
    tensors, metadata = checksums.load_tensors(content)
    missing = {'paths', 'names', 'source', 'model', 'stage'} - metadata.keys()
    if missing or 'features' not in tensors:
        raise Error(f'lacks {", ".join(sorted(missing)) or "features"}')
    paths = _parse_list(metadata['paths'])
    names = _parse_list(metadata['names'])
    if len(names) != len(paths):
        raise Error(f'{len(paths)} images, but {len(names)} names')
    for path in paths:
        if not isinstance(path, str) or '://' in path:
            raise Error(f'{path} is not a local path')
    if not all(isinstance(name, str | None) for name in names):
        raise Error('class names are not texts')
    features = tensors['features']
    if features.shape[:-1] != (len(paths),) or not features.numel():
        raise Error(f'{len(paths)} images, but features {features.shape}')
    if features.dtype != torch.float32:
        raise Error(f'features are {features.dtype}, expected float32')
    if not features.isfinite().all():
        raise Error('features are not finite')
    return Gallery(
        LabeledImages.from_names(paths, names, metadata['source']),
        features,
        model=metadata['model'],
        feature=metadata['stage'],
    )


def _parse_list(content: str) -> list:
    try:
        values = json.loads(content)
    except (RecursionError, ValueError) as error:
        raise Error(str(error)) from error
    if not isinstance(values, list):
        raise Error(f'{content:.40} is not a list')
    return values
