# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that others are looked up in, by their features."""

import json
import os
import warnings
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.evaluation.retrieval import (
    average_precision,
    cosine_similarity,
    knn_scores,
    recall_at,
)

from .labelled_images import LabelledImages

RECALLS = (1, 5, 10)


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
        files = [os.path.realpath(path) for path in self.images.paths]
        where = {}
        for position, file in enumerate(files):
            where.setdefault(file, []).append(position)
        similarity = cosine_similarity(features, self.features)
        for row, path in zip(similarity, paths, strict=True):
            row[where.get(os.path.realpath(path), [])] = -torch.inf
        return similarity


def write_gallery(gallery: Gallery, path: str | PathLike) -> None:
    """Write a gallery, to be used again.

    Args:
        gallery (Gallery): The gallery. Of its images paths are written.
        path (str | Path): A ``.safetensors`` file; its folder is made.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    images = gallery.images
    facts = dict(
        paths=json.dumps([os.path.abspath(path) for path in images.paths]),
        names=json.dumps(images.names),
        source=images.source,
        model=gallery.model,
        stage=gallery.stage,
    )
    save_file(dict(features=gallery.features.contiguous()), path, facts)


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


def look_up(
    gallery: Gallery,
    queries: LabelledImages,
    features: Tensor,
    topk: int = 10,
    neighbours: int = 5,
) -> tuple[list[dict], dict[str, float]]:
    """The nearest gallery images of queries.

    Args:
        gallery (Gallery): The gallery.
        queries (LabelledImages): The queries.
        features (Tensor): Their features (N, C).
        topk (int): Gallery images to name for each. Defaults to 10.
        neighbours (int): How many vote on the class. Defaults to 5.

    Returns:
        tuple[list[dict], dict[str, float]]: For each query ``image``,
        ``name`` (of its class), ``neighbours`` (``image``, ``name``,
        ``similarity``, nearest first), and, where gallery images have
        classes, ``knn_class`` and ``knn_score``; where its class has other
        images in the gallery, ``average_precision``. Then :func:`metrics`.

    Raises:
        ValueError: If features are of another size.
    """
    similarity = gallery.similarity(queries.paths, features)
    entries = _nearest(gallery, queries, similarity, topk)
    _vote(entries, similarity, gallery.images.names, neighbours)
    relevant = _same_class(queries.names, gallery.images.names)
    precisions = average_precision(similarity, relevant)
    found = metrics(entries, similarity, relevant, precisions)
    for entry, precision in zip(entries, precisions.tolist(), strict=True):
        if precision == precision:
            entry['average_precision'] = precision
    return entries, found


def _nearest(gallery, queries, similarity, topk) -> list[dict]:
    images = gallery.images
    order = similarity.argsort(dim=1, descending=True, stable=True)
    return [
        dict(
            image=path,
            name=name,
            neighbours=[
                dict(
                    image=images.paths[i],
                    name=images.names[i],
                    similarity=float(row[i]),
                )
                for i in ranking[:topk].tolist()
                if row[i] > -torch.inf
            ],
        )
        for path, name, row, ranking in zip(
            queries.paths, queries.names, similarity, order, strict=True
        )
    ]


def _vote(entries, similarity, names, neighbours) -> None:
    """Add the class that the nearest images with a class vote for."""
    named = [i for i, name in enumerate(names) if name is not None]
    if not named:
        return
    similarity, names = similarity[:, named], [names[i] for i in named]
    classes = sorted(set(names))
    labels = torch.tensor([classes.index(name) for name in names])
    alone = (similarity == -torch.inf).all(dim=1)
    scores = knn_scores(similarity, labels, len(classes), neighbours)
    for entry, row, skip in zip(entries, scores, alone, strict=True):
        if not skip:
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())


def _same_class(queries, gallery) -> Tensor:
    """Whether (N, M) are of one class; no class is like no other."""
    numbers = {name: i for i, name in enumerate({*queries, *gallery} - {None})}
    ours = torch.tensor([numbers.get(name, -1) for name in queries])
    theirs = torch.tensor([numbers.get(name, -2) for name in gallery])
    return ours[:, None] == theirs


def metrics(
    entries: list[dict],
    similarity: Tensor,
    relevant: Tensor,
    precision: Tensor,
) -> dict[str, float]:
    """How well queries find images of their class, in per cent.

    Args:
        entries (list[dict]): Of :func:`look_up`.
        similarity (Tensor): (N, M).
        relevant (Tensor): (N, M), bool.
        precision (Tensor): Average precision of each query (N,), NaN where
            it has no relevant image.

    Returns:
        dict[str, float]: ``mAP``, ``recall@1`` and so on, ``knn_top1``, over
        the queries of which the gallery has another image of their class;
        ``queries``, their number; ``unmatched``, how many others have a
        class. Empty where no query has a class; of queries whose classes
        are all new to the gallery only the numbers, with a warning.
    """
    labelled = sum(entry['name'] is not None for entry in entries)
    if not labelled:
        return {}
    matched = ~precision.isnan()
    number = int(matched.sum())
    if not number:
        named = sorted({entry['name'] for entry in entries} - {None})
        warnings.warn(
            'nothing to measure: the gallery has no other image of the '
            f'classes of the queries ({", ".join(named[:3])}, ...). Name '
            'folders, or lines of classes.txt, alike in both',
            stacklevel=2,
        )
        return dict(queries=0, unmatched=labelled)
    values = {'mAP': precision}
    for k in RECALLS:
        values[f'recall@{k}'] = recall_at(similarity, relevant, k)
    right = [entry.get('knn_class') == entry['name'] for entry in entries]
    values['knn_top1'] = torch.tensor(right, dtype=torch.float64)
    means = {
        name: 100 * float(value[matched].double().mean())
        for name, value in values.items()
    }
    return dict(means, queries=number, unmatched=labelled - number)
