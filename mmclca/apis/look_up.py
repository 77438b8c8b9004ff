# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Looking up images in a gallery, and how well that works."""

import warnings
from math import isnan

import torch
from torch import Tensor

from mmclca.evaluation.retrieval import mean_over_matched, measure_queries
from mmclca.models.retrievers import knn_scores
from mmclca.utils.terminal import printable

from .gallery import Gallery
from .labelled_images import LabelledImages

RECALLS = (1, 5, 10)


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
        images in the gallery, ``average_precision``. Then in per cent
        ``mAP``, ``recall@1`` and so on and ``knn_top1``, over the queries of
        which the gallery has another image of their class; ``queries``,
        their number; and ``unmatched``, how many others have a class. The
        second dict is empty where no query has a class; for queries whose
        classes are all new to the gallery it has only the numbers, with a
        warning.

    Raises:
        ValueError: If features are of another size.
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
