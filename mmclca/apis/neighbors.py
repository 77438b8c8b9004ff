# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Similar images in a gallery, kNN votes on the class, and their accuracy."""

import warnings
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Search:
    """How to rank the images of a gallery, and how many to list.

    ``topk`` images are listed per query; ``neighbors`` images vote on its
    class (0: :func:`choose_voters`). ``ranking`` is described in
    :func:`.ranked_similarity`; all but 'cosine' need the coarse class of each
    class, ``coarse_classes``.
    """

    topk: int = 10
    neighbors: int = 5
    ranking: str = 'cosine'
    coarse_classes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Voting:
    """Number of voting images, and their temperature."""

    number: int
    temperature: float = 0.07


def look_up(
    gallery: Gallery,
    queries: LabeledImages,
    features: Tensor,
    search: Search | None = None,
) -> tuple[list[dict], dict[str, float]]:
    """Find the nearest gallery images of queries, and measure the retrieval.

    Features are (N, C); ``search`` is ``Search()`` by default. Queries are
    processed in chunks, so memory use does not grow with their number.

    Returns an entry per query and the metrics. Entries have ``image``,
    ``name`` (its class) and ``neighbors`` (``image``, ``name`` and
    ``similarity``, nearest first); ``knn_class`` and ``knn_score`` if gallery
    images have classes; ``average_precision`` if the gallery has another image
    of the class. Metrics are means in percent over the queries with such an
    image (``mAP``, ``recall@1`` etc., ``knn_top1``), with the counts
    ``queries`` and ``unmatched``. They are empty if no query has a class, and
    only counts, with a warning, if all classes are new.
    """
    search = search or Search()
    images = gallery.images
    entries: list[dict] = []
    measured: list[dict[str, float]] = []
    voting = Voting(search.neighbors)
    if not search.neighbors:
        voting = choose_voters(images, gallery.features)
    labels = torch.tensor([-1 if x is None else x for x in images.labels])
    positions: dict[str | None, int] = {
        name: label for label, name in enumerate(images.classes)
    }
    wanted = torch.tensor([positions.get(name, -2) for name in queries.names])
    coarse = _label_coarse(images.names, queries.names, search)
    chunk = 1 + MAX_ENTRIES // len(images)
    for rows in torch.arange(len(queries)).split(chunk):
        part = queries.select(rows.tolist())
        similarity = gallery.similarity(part.paths, features[rows])
        is_oracle = search.ranking == 'oracle'
        ranked = ranked_similarity(
            similarity,
            coarse[: len(images)],
            search.ranking,
            SIGMA,
            coarse[len(images) + rows] if is_oracle else None,
        )
        nearest = _list_nearest(images, part, similarity, ranked, search.topk)
        _vote(nearest, similarity, labels, images.classes, voting)
        measured += _measure(nearest, ranked, wanted[rows, None] == labels)
        entries += nearest
    return entries, _average(entries, measured)


def _label_coarse(
    gallery_names: list[str | None],
    query_names: list[str | None],
    search: Search,
) -> Tensor:
    """Return coarse labels: gallery images first, then queries if needed."""
    names = gallery_names + query_names
    if search.ranking == 'cosine':
        names = []
    elif search.ranking == 'conditional':
        names = gallery_names
    classes = [name for name in names if name is not None]
    if len(classes) < len(names):
        raise Error(
            f'{search.ranking} ranking needs classes, but '
            f'{len(names) - len(classes)} images have none; use folders or '
            'lists with classes'
        )
    return torch.tensor(coarse_labels(classes, search.coarse_classes)[0])


def _list_nearest(images, queries, similarity, ranked, topk) -> list[dict]:
    """Build the entry of each query with its first ``topk`` gallery images."""
    order = ranked.argsort(dim=1, descending=True, stable=True)[:, :topk]
    entries = []
    rows = zip(queries.paths, queries.names, similarity, order, strict=True)
    for path, name, row, ranking in rows:
        positions = ranking[row[ranking] > -torch.inf]
        nearest = images.select(positions.tolist())
        neighbors = [
            dict(image=image, name=label, similarity=value)
            for image, label, value in zip(
                nearest.paths,
                nearest.names,
                row[positions].tolist(),
                strict=True,
            )
        ]
        entries.append(dict(image=path, name=name, neighbors=neighbors))
    return entries


def _measure(entries, ranked, relevant) -> list[dict[str, float]]:
    """Measure each query, and add the average precision to its entry."""
    tables = measure_queries(ranked, relevant, RECALLS)
    # lists, because small tensors would keep the memory of large ones in use
    lists = {name: table.tolist() for name, table in tables.items()}
    rows = [
        {name: values[i] for name, values in lists.items()}
        for i in range(len(entries))
    ]
    for entry, row in zip(entries, rows, strict=True):
        row['knn_top1'] = float(entry.get('knn_class') == entry['name'])
        if not isnan(row['mAP']):
            entry['average_precision'] = row['mAP']
    return rows


def _average(
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
        examples = printable(', '.join(named[:3]))
        warnings.warn(
            'no accuracy: the gallery has no other image of the query classes '
            f'({examples}, ...); use the same class names in both',
            stacklevel=3,
        )
    queries = len(labelled) - unmatched
    return dict(means, queries=queries, unmatched=unmatched)


def choose_voters(
    images: LabeledImages, features: Tensor, folds: int = 5
) -> Voting:
    """Select the number of voting images by cross-validation on a gallery.

    Touvron's thesis (2022), section 2.5: 10, 15, 20, 25 or 30 images, with
    temperature 0.05.
    """
    correct = dict.fromkeys(VOTERS, 0)
    named = [i for i, x in enumerate(images.labels) if x is not None]
    labels = torch.tensor([images.labels[i] for i in named])
    features, number = features[named], len(images.classes)
    for train, test in GroupedSplits(labels).folds(folds, seed=0):
        chunk = 1 + MAX_ENTRIES // len(train)
        for rows in torch.as_tensor(test).split(chunk):
            similar = cosine_similarity(features[rows], features[train])
            for k in VOTERS:
                votes = nearest_votes(similar, labels[train], number, k, SIGMA)
                correct[k] += int((votes.argmax(dim=1) == labels[rows]).sum())
    return Voting(max(VOTERS, key=lambda k: correct[k]), SIGMA)


def _vote(entries, similarity, labels, classes, voting: Voting) -> None:
    """Add ``knn_class`` and ``knn_score`` to the entries of N queries.

    The nearest gallery images with a class vote: ``similarity`` is (N, M),
    ``labels`` are (M,), -1 without a class.
    """
    if not classes:
        return
    similarity = similarity.masked_fill(labels < 0, -torch.inf)
    scores = nearest_votes(
        similarity,
        labels.clamp(min=0),
        len(classes),
        voting.number,
        voting.temperature,
    )
    for entry, row in zip(entries, scores, strict=True):
        if not row.isnan().any():  # NaN without any voter
            entry['knn_class'] = classes[int(row.argmax())]
            entry['knn_score'] = float(row.max())
