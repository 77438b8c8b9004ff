# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that others are looked up in by features, and how well it works."""

import json
import os
import warnings
from dataclasses import dataclass
from math import isnan
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.datasets.photographs import Photographs
from mmclca.evaluation.retrieval import mean_over_matched, measure_queries
from mmclca.models.retrievers import (
    cosine_similarity,
    hide_same_files,
    nearest_votes,
    positions_of,
)
from mmclca.utils.files import replace_file
from mmclca.utils.messages import printable

RECALLS = (1, 5, 10)


@dataclass
class Gallery:
    """Images that others are looked up in.

    Args:
        images (Photographs): The images.
        features (Tensor): Their features (M, C).
        model (str): ``fingerprint`` of the model that made them.
        stage (str): Where it made them, see ``extract_features``.
    """

    images: Photographs
    features: Tensor
    model: str
    stage: str

    def similarity(self, paths: list[str], features: Tensor) -> Tensor:
        """Compare queries, files with features (N, C), with the gallery.

        Returns:
            Tensor: Cosines (N, M), minus infinity where both are one file.
        """
        similarity = cosine_similarity(features, self.features)
        hide_same_files(similarity, paths, positions_of(self.images.paths))
        return similarity


def write_gallery(gallery: Gallery, path: str | PathLike) -> None:
    """Write a gallery, of whose images paths, as ``.safetensors``."""
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
        images = Photographs.named(
            json.loads(facts['paths']),
            json.loads(facts['names']),
            facts['source'],
        )
        found = Gallery(images, features, facts['model'], facts['stage'])
        _check_file(found)
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


def _check_file(gallery: Gallery) -> None:
    """Refuse what fits nothing; a file of someone else has nothing fetched."""
    paths, features = gallery.images.paths, gallery.features
    if not paths or features.dim() != 2 or len(features) != len(paths):
        raise ValueError(f'{len(paths)} images, features {features.shape}')
    if not features.isfinite().all():
        raise ValueError('features are not finite')
    for path in paths:
        if '://' in path:
            raise ValueError(f'it names {path}, no file of this machine')


def look_up(
    gallery: Gallery,
    queries: Photographs,
    features: Tensor,
    topk: int = 10,
    neighbours: int = 5,
) -> tuple[list[dict], dict[str, float]]:
    """Find the nearest gallery images of queries.

    Args:
        gallery (Gallery): The gallery.
        queries (Photographs): The queries.
        features (Tensor): Their features (N, C).
        topk (int): Gallery images to name for each. Defaults to 10.
        neighbours (int): How many vote on the class. Defaults to 5.

    Returns:
        tuple[list[dict], dict[str, float]]: For each query ``image``,
        ``name`` (of its class), ``neighbours`` (``image``, ``name``,
        ``similarity``, nearest first), and, where gallery images have
        classes, ``knn_class`` and ``knn_score``; where its class has other
        images in the gallery, ``average_precision``. Then in per cent
        ``mAP``, ``recall@1`` and so on and ``knn_top1``, over the queries of
        which the gallery has another image of their class; ``queries``,
        their number; and ``unmatched``, how many others have a class. The
        second dict is empty where no query has a class; for queries whose
        classes are all new to the gallery it has only the numbers, with a
        warning.
    """
    similarity = gallery.similarity(queries.paths, features)
    entries = _nearest(gallery, queries, similarity, topk)
    _vote(entries, similarity, gallery.images.names, neighbours)
    relevant = _same_class(queries.names, gallery.images.names)
    measured = measure_queries(similarity, relevant, RECALLS)
    precisions = measured['mAP'].tolist()
    for entry, precision in zip(entries, precisions, strict=True):
        if not isnan(precision):
            entry['average_precision'] = precision
    return entries, _metrics(entries, measured)


def _nearest(gallery, queries, similarity, topk) -> list[dict]:
    paths, names = gallery.images.paths, gallery.images.names
    order = similarity.argsort(dim=1, descending=True, stable=True)
    entries = []
    rows = zip(queries.paths, queries.names, similarity, order, strict=True)
    for path, name, row, ranking in rows:
        neighbours = [
            dict(image=paths[i], name=names[i], similarity=float(row[i]))
            for i in ranking[:topk].tolist()
            if row[i] > -torch.inf
        ]
        entries.append(dict(image=path, name=name, neighbours=neighbours))
    return entries


def _vote(entries, similarity, names, neighbours) -> None:
    """Add the class that the nearest images with a class vote for."""
    named = [i for i, name in enumerate(names) if name is not None]
    if not named:
        return
    similarity, names = similarity[:, named], [names[i] for i in named]
    classes = sorted(set(names))
    labels = torch.tensor([classes.index(name) for name in names])
    alone = (similarity == -torch.inf).all(dim=1)
    scores = nearest_votes(similarity, labels, len(classes), neighbours)
    for entry, row, skip in zip(entries, scores, alone, strict=True):
        if not skip:
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())


def _same_class(queries, gallery) -> Tensor:
    """Compare classes (N, M); no class is like no other."""
    numbers = {name: i for i, name in enumerate({*queries, *gallery} - {None})}
    ours = torch.tensor([numbers.get(name, -1) for name in queries])
    theirs = torch.tensor([numbers.get(name, -2) for name in gallery])
    return ours[:, None] == theirs


def _metrics(
    entries: list[dict], measured: dict[str, Tensor]
) -> dict[str, float]:
    labelled = sum(entry['name'] is not None for entry in entries)
    if not labelled:
        return {}
    right = [entry.get('knn_class') == entry['name'] for entry in entries]
    knn_top1 = torch.tensor(right, dtype=torch.float64)
    means = mean_over_matched(dict(measured, knn_top1=knn_top1))
    if not means:
        named = sorted({entry['name'] for entry in entries} - {None})
        some = printable(', '.join(named[:3]))
        warnings.warn(
            'nothing to measure: the gallery has no other image of the '
            f'classes of the queries ({some}, ...). Name '
            'folders, or lines of classes.txt, alike in both',
            stacklevel=3,
        )
    queries = int((~measured['mAP'].isnan()).sum())
    return dict(means, queries=queries, unmatched=labelled - queries)
