# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Images that others are looked up in by features, and how well it works."""

import json
import os
import warnings
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mmclca.datasets.levels import coarse_labels
from mmclca.datasets.photographs import LabeledImages
from mmclca.evaluation.retrieval import mean_over_matched, measure_queries
from mmclca.models import retrievers
from mmclca.models.selfsup.grafit import ranked_similarity
from mmclca.utils.files import replace_bytes
from mmclca.utils.messages import printable

from .voting import ENTRIES, SIGMA, choose_voters, vote

RECALLS = (1, 5, 10)
NEAREST = ('image', 'name', 'similarity')  # of an image that is found


@dataclass
class Gallery:
    """Images that others are looked up in.

    Args:
        images (LabeledImages): The images.
        features (Tensor): Their features (M, C).
        model (str): ``fingerprint`` of the model that made them.
        stage (str): Where it made them, see ``extract_features``.
    """

    images: LabeledImages
    features: Tensor
    model: str
    stage: str

    def similarity(self, paths: list[str], features: Tensor) -> Tensor:
        """Compare queries, files with features (N, C), with the gallery.

        Returns:
            Tensor: Cosines (N, M), minus infinity where both are one file.
        """
        similarity = retrievers.cosine_similarity(features, self.features)
        retrievers.hide_same_files(similarity, paths, self.files)
        return similarity

    @cached_property
    def files(self) -> Tensor:
        """Its files, see :func:`.files_of`."""
        return retrievers.files_of(self.images.paths)


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
    replace_bytes(Path(path), save(features, facts))


def read_gallery(path: str | PathLike, model: str, stage: str) -> Gallery:
    """Read a gallery written by :func:`write_gallery`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If it is not a gallery, or of another model or stage.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f'gallery {path} does not exist')
    try:
        with safe_open(path, 'pt') as file:
            facts, features = file.metadata(), file.get_tensor('features')
        paths, names = (json.loads(facts[x]) for x in ('paths', 'names'))
        images = LabeledImages.named(paths, names, facts['source'])
        found = Gallery(images, features, facts['model'], facts['stage'])
        _check_file(found)
    except (KeyError, SafetensorError, TypeError, ValueError) as error:
        raise ValueError(
            f'{path} is not a gallery ({error}); create one with retrieval.py '
            '--save-index'
        ) from error
    if (found.model, found.stage) != (model, stage):
        raise ValueError(
            f'{path} was written with another model, keep rate or stage '
            f'({found.stage!r}, expected {stage!r}); write it again with this '
            'model'
        )
    return found


def _check_file(gallery: Gallery) -> None:
    """Refuse invalid features, and URLs: nothing is downloaded."""
    paths, features = gallery.images.paths, gallery.features
    shape = len(paths), features[0].numel() if len(features) else 0
    if 0 in shape or features.shape != shape:
        raise ValueError(f'{len(paths)} images, but features {features.shape}')
    if not torch.stack(features.aminmax()).isfinite().all():
        raise ValueError('features are not finite')
    if not features.is_floating_point():
        raise ValueError(f'features are {features.dtype}, expected floats')
    for path in paths:
        if '://' in str(path) or not isinstance(path, str):
            raise ValueError(f'{path} is not a local path')


def look_up(
    gallery: Gallery,
    queries: LabeledImages,
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
        queries (LabeledImages): The queries.
        features (Tensor): Their features (N, C).
        topk (int): Gallery images to name for each. Defaults to 10.
        neighbours (int): How many vote on the class; 0: as many as
            :func:`.choose_voters` says. Defaults to 5.
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
    images, entries, measured = gallery.images, [], []
    voting = (neighbours,)
    if not neighbours:
        voting = choose_voters(images, gallery.features)
    labels = torch.tensor([-1 if x is None else x for x in images.labels])
    known = {name: label for label, name in enumerate(images.classes)}
    wanted = torch.tensor([known.get(name, -2) for name in queries.names])
    coarse = _coarse(images.names, queries.names, ranking, coarse_of)
    for rows in torch.arange(len(queries)).split(1 + ENTRIES // len(images)):
        some = queries.select(rows.tolist())
        similarity = gallery.similarity(some.paths, features[rows])
        ours = coarse[len(images) + rows] if ranking == 'oracle' else None
        theirs = coarse[: len(images)]
        ranked = ranked_similarity(similarity, theirs, ranking, SIGMA, ours)
        found = _nearest(images, some, similarity, ranked, topk)
        vote(found, similarity, labels, images.classes, *voting)
        measured += _measured(found, ranked, wanted[rows, None] == labels)
        entries += found
    return entries, _metrics(entries, measured)


def _coarse(theirs, ours, ranking, coarse_of) -> Tensor:
    """Coarse labels of the gallery, then of the queries if needed."""
    names = dict(cosine=[], conditional=theirs).get(ranking, theirs + ours)
    if None in names:
        raise ValueError(
            f'{ranking} ranking needs classes, but {names.count(None)} images '
            'have none; use folders or lists with classes'
        )
    return torch.tensor(coarse_labels(names, coarse_of)[0])


def _nearest(images, queries, similarity, ranked, topk) -> list[dict]:
    """Name queries, and the first images of their rankings."""
    order = ranked.argsort(dim=1, descending=True, stable=True)[:, :topk]
    entries = []
    rows = zip(queries.paths, queries.names, similarity, order, strict=True)
    for path, name, row, ranking in rows:
        near = ranking[row[ranking] > -torch.inf]
        some = images.select(near.tolist())
        facts = zip(some.paths, some.names, row[near].tolist(), strict=True)
        neighbours = [dict(zip(NEAREST, one, strict=True)) for one in facts]
        entries.append(dict(image=path, name=name, neighbours=neighbours))
    return entries


def _measured(entries, ranked, relevant) -> list[dict[str, float]]:
    """Measure each query, whose entry gets its average precision."""
    tables = measure_queries(ranked, relevant, RECALLS)
    # small tensors that stay would keep large ones from being given back
    numbers = zip(*(x.tolist() for x in tables.values()), strict=True)
    rows = [dict(zip(tables, one, strict=True)) for one in numbers]
    for entry, row in zip(entries, rows, strict=True):
        row['knn_top1'] = float(entry.get('knn_class') == entry['name'])
        if not isnan(row['mAP']):
            entry['average_precision'] = row['mAP']
    return rows


def _metrics(
    entries: list[dict], measured: list[dict[str, float]]
) -> dict[str, float]:
    """Average the measures of the queries with a class."""
    pairs = zip(entries, measured, strict=True)
    labelled = [row for entry, row in pairs if entry['name'] is not None]
    if not labelled:
        return {}
    means = mean_over_matched(labelled)
    unmatched = means.pop('unmatched')
    if not means:
        named = sorted({entry['name'] for entry in entries} - {None})
        some = printable(', '.join(named[:3]))
        warnings.warn(
            'no accuracy: the gallery has no other image of the query classes '
            f'({some}, ...); use the same class names in both',
            stacklevel=3,
        )
    queries = len(labelled) - unmatched
    return dict(means, queries=queries, unmatched=unmatched)
