# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Similar images in a gallery, kNN votes on the class, and their accuracy."""

import warnings
from math import isnan

import torch
from torch import Tensor

from mmclca.datasets.grouped_splits import GroupedSplits
from mmclca.datasets.levels import coarse_labels
from mmclca.datasets.photos import LabeledImages
from mmclca.errors import Error
from mmclca.evaluation.retrieval import mean_over_matched, measure_queries
from mmclca.models.retrievers import cosine_similarity, nearest_votes
from mmclca.models.selfsup.grafit import ranked_similarity
from mmclca.utils.messages import printable

from .gallery import Gallery

RECALLS = (1, 5, 10)
NEAREST = ('image', 'name', 'similarity')  # facts about a similar image
MAX_ENTRIES = 2**20  # similarities per chunk; ranking them takes about 50 MB
VOTERS = (10, 15, 20, 25, 30)
SIGMA = 0.05  # temperature of the votes


def look_up(
    gallery: Gallery,
    queries: LabeledImages,
    features: Tensor,
    topk: int = 10,
    neighbors: int = 5,
    ranking: str = 'cosine',
    coarse_of: dict[str, str] = {},
) -> tuple[list[dict], dict[str, float]]:
    """Find the nearest gallery images of queries, and measure the retrieval.

    Features are (N, C). ``topk`` images are listed per query; ``neighbors``
    images vote on its class (0: :func:`choose_voters`). ``ranking`` is
    described in :func:`.ranked_similarity`; all but 'cosine' need the coarse
    class of each class, ``coarse_of``. Queries are processed in chunks, so
    memory use does not grow with their number.

    Returns an entry per query and the metrics. Entries have ``image``,
    ``name`` (its class) and ``neighbors`` (``image``, ``name`` and
    ``similarity``, nearest first); ``knn_class`` and ``knn_score`` if gallery
    images have classes; ``average_precision`` if the gallery has another image
    of the class. Metrics are means in percent over the queries with such an
    image (``mAP``, ``recall@1`` etc., ``knn_top1``), with the counts
    ``queries`` and ``unmatched``. They are empty if no query has a class, and
    only counts, with a warning, if all classes are new.
    """
    images, entries, measured = gallery.images, [], []
    voting = (neighbors,)
    if not neighbors:
        voting = choose_voters(images, gallery.features)
    labels = torch.tensor([-1 if x is None else x for x in images.labels])
    known = {name: label for label, name in enumerate(images.classes)}
    wanted = torch.tensor([known.get(name, -2) for name in queries.names])
    coarse = _coarse(images.names, queries.names, ranking, coarse_of)
    chunk = 1 + MAX_ENTRIES // len(images)
    for rows in torch.arange(len(queries)).split(chunk):
        some = queries.select(rows.tolist())
        similarity = gallery.similarity(some.paths, features[rows])
        ours = coarse[len(images) + rows] if ranking == 'oracle' else None
        theirs = coarse[: len(images)]
        ranked = ranked_similarity(similarity, theirs, ranking, SIGMA, ours)
        found = _nearest(images, some, similarity, ranked, topk)
        _vote(found, similarity, labels, images.classes, *voting)
        measured += _measured(found, ranked, wanted[rows, None] == labels)
        entries += found
    return entries, _metrics(entries, measured)


def _coarse(theirs, ours, ranking, coarse_of) -> Tensor:
    """Return coarse labels: gallery images first, then queries if needed."""
    names = dict(cosine=[], conditional=theirs).get(ranking, theirs + ours)
    if None in names:
        raise Error(
            f'{ranking} ranking needs classes, but {names.count(None)} images '
            'have none; use folders or lists with classes'
        )
    return torch.tensor(coarse_labels(names, coarse_of)[0])


def _nearest(images, queries, similarity, ranked, topk) -> list[dict]:
    """Build the entry of each query with its first ``topk`` gallery images."""
    order = ranked.argsort(dim=1, descending=True, stable=True)[:, :topk]
    entries = []
    rows = zip(queries.paths, queries.names, similarity, order, strict=True)
    for path, name, row, ranking in rows:
        near = ranking[row[ranking] > -torch.inf]
        some = images.select(near.tolist())
        facts = zip(some.paths, some.names, row[near].tolist(), strict=True)
        neighbors = [dict(zip(NEAREST, one, strict=True)) for one in facts]
        entries.append(dict(image=path, name=name, neighbors=neighbors))
    return entries


def _measured(entries, ranked, relevant) -> list[dict[str, float]]:
    """Measure each query, and add the average precision to its entry."""
    tables = measure_queries(ranked, relevant, RECALLS)
    # lists, because small tensors would keep the memory of large ones in use
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


def choose_voters(
    images: LabeledImages, features: Tensor, folds: int = 5
) -> tuple[int, float]:
    """Select the number of voting images by cross-validation on a gallery.

    Touvron's thesis (2022), section 2.5: 10, 15, 20, 25 or 30 images, with
    temperature 0.05. Returns the number and the temperature.
    """
    right = dict.fromkeys(VOTERS, 0)
    named = [i for i, x in enumerate(images.labels) if x is not None]
    labels = torch.tensor([images.labels[i] for i in named])
    features, number = features[named], len(images.classes)
    for known, tested in GroupedSplits(labels).folds(folds, seed=0):
        chunk = 1 + MAX_ENTRIES // len(known)
        for rows in torch.as_tensor(tested).split(chunk):
            similar = cosine_similarity(features[rows], features[known])
            for k in VOTERS:
                votes = nearest_votes(similar, labels[known], number, k, SIGMA)
                right[k] += int((votes.argmax(dim=1) == labels[rows]).sum())
    return max(VOTERS, key=right.get), SIGMA


def _vote(entries, similarity, labels, classes, k, temperature=0.07) -> None:
    """Add ``knn_class`` and ``knn_score`` to the entries of N queries.

    The k nearest gallery images with a class vote: ``similarity`` is (N, M),
    ``labels`` are (M,), -1 without a class.
    """
    if not classes:
        return
    similarity = similarity.masked_fill(labels < 0, -torch.inf)
    how = labels.clamp(min=0), len(classes), k, temperature
    scores = nearest_votes(similarity, *how)
    for entry, row in zip(entries, scores, strict=True):
        if not row.isnan().any():  # NaN without any voter
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())
