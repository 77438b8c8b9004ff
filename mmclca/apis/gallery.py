# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that others are looked up in by features, and how well it works."""

import json
import os
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mmclca.datasets.levels import coarse_labels
from mmclca.datasets.photographs import Photographs
from mmclca.datasets.units import Units
from mmclca.evaluation.retrieval import mean_over_matched, measure_queries
from mmclca.models.retrievers import (
    cosine_similarity,
    files_of,
    hide_same_files,
    nearest_votes,
)
from mmclca.models.selfsup.grafit import ranked_similarity
from mmclca.utils.files import replace_file
from mmclca.utils.messages import printable

RECALLS = (1, 5, 10)
ENTRIES = 2**20  # similarities at a time, whose ranking takes some 50 MB
# numbers of images that vote, of which folds choose, and their temperature
VOTERS = (10, 15, 20, 25, 30)
SIGMA = 0.05


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
        hide_same_files(similarity, paths, self.files)
        return similarity

    @cached_property
    def files(self) -> Tensor:
        """Its files, see :func:`.files_of`."""
        return files_of(self.images.paths)


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
    if not torch.stack(features.aminmax()).isfinite().all():
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
    ranking: str = 'cosine',
    coarse_of: dict[str, str] = {},
) -> tuple[list[dict], dict[str, float]]:
    """Find the nearest gallery images of queries.

    Some queries at a time, so that memory does not grow with their number.

    Args:
        gallery (Gallery): The gallery.
        queries (Photographs): The queries.
        features (Tensor): Their features (N, C).
        topk (int): Gallery images to name for each. Defaults to 10.
        neighbours (int): How many vote on the class; 0: as many as
            :func:`choose_voters` says. Defaults to 5.
        ranking (str): What comes first: see :func:`.ranked_similarity`.
            Defaults to 'cosine'.
        coarse_of (dict[str, str]): The coarse class of each class, for other
            rankings. Defaults to {}.

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
    voting = (neighbours,) if neighbours else choose_voters(gallery)
    images, entries, measured = gallery.images, [], defaultdict(list)
    labels = torch.tensor([-1 if x is None else x for x in images.labels])
    known = {name: label for label, name in enumerate(images.classes)}
    wanted = torch.tensor([known.get(name, -2) for name in queries.names])
    coarse = _coarse(images.names, queries.names, ranking, coarse_of)
    for rows in torch.arange(len(queries)).split(1 + ENTRIES // len(images)):
        some = queries.select(rows.tolist())
        similarity = gallery.similarity(some.paths, features[rows])
        theirs, ours = coarse[: len(images)], coarse[len(images) :]
        ours = ours[rows] if len(ours) else None
        ranked = ranked_similarity(similarity, theirs, ranking, SIGMA, ours)
        found = _nearest(gallery, some, similarity, ranked, topk)
        _vote(found, similarity, labels, images.classes, *voting)
        relevant = wanted[rows, None] == labels
        found_of = measure_queries(ranked, relevant, RECALLS)
        # small tensors that stay would keep large ones from being given back
        for name, values in found_of.items():
            measured[name] += values.tolist()
        entries += found
    for entry, precision in zip(entries, measured['mAP'], strict=True):
        if not isnan(precision):
            entry['average_precision'] = precision
    tables = {name: torch.tensor(x) for name, x in measured.items()}
    return entries, _metrics(entries, tables)


def choose_voters(gallery: Gallery, folds: int = 5) -> tuple[int, float]:
    """Choose how many images vote by folds of the gallery.

    Touvron's thesis, section 2.5: 10, 15, 20, 25 or 30, with a temperature of
    0.05.

    Returns:
        tuple[int, float]: The number and the temperature.
    """
    images, right = gallery.images, dict.fromkeys(VOTERS, 0)
    named = [i for i, x in enumerate(images.labels) if x is not None]
    labels = torch.tensor([images.labels[i] for i in named])
    features, number = gallery.features[named], len(images.classes)
    for known, tested in Units(labels).folds(folds, seed=0):
        for rows in torch.as_tensor(tested).split(1 + ENTRIES // len(known)):
            similar = cosine_similarity(features[rows], features[known])
            for k in VOTERS:
                votes = nearest_votes(similar, labels[known], number, k, SIGMA)
                right[k] += int((votes.argmax(dim=1) == labels[rows]).sum())
    return max(VOTERS, key=right.get), SIGMA


def at_level(images: Photographs, coarse_of: dict[str, str]) -> Photographs:
    """Give images the coarse classes of theirs."""
    labels, names = coarse_labels(images.classes, coarse_of)
    found = [x if x is None else labels[x] for x in images.labels]
    return replace(images, labels=found, classes=names)


def _coarse(theirs, ours, ranking, coarse_of) -> Tensor:
    """Coarse labels of a gallery, then of the queries where they count."""
    names = dict(cosine=[], conditional=theirs).get(ranking, theirs + ours)
    if None in names:
        raise ValueError(
            f'{ranking} ranking goes by classes, which {names.count(None)} '
            'images have not: give folders or lists with classes'
        )
    return torch.tensor(coarse_labels(names, coarse_of)[0])


def _nearest(gallery, queries, similarity, ranked, topk) -> list[dict]:
    images = gallery.images
    order = ranked.argsort(dim=1, descending=True, stable=True)
    entries = []
    rows = zip(queries.paths, queries.names, similarity, order, strict=True)
    for path, name, row, ranking in rows:
        neighbours = [
            dict(
                image=images.paths[i],
                name=images.name_of(i),
                similarity=float(row[i]),
            )
            for i in ranking[:topk].tolist()
            if row[i] > -torch.inf
        ]
        entries.append(dict(image=path, name=name, neighbours=neighbours))
    return entries


def _vote(entries, similarity, labels, classes, k, temperature=0.07) -> None:
    """Add the class that the nearest images with a class vote for."""
    if not classes:
        return
    similarity = similarity.masked_fill(labels < 0, -torch.inf)
    alone = (similarity == -torch.inf).all(dim=1)
    how = labels.clamp(min=0), len(classes), k, temperature
    scores = nearest_votes(similarity, *how)
    for entry, row, skip in zip(entries, scores, alone, strict=True):
        if not skip:
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())


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
