# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Measures of images found by images of the same class.

Similarities are (N, M), of N queries to M images of the gallery. What is not
to be found, such as the query itself, has minus infinity.
"""

from collections.abc import Sequence
from math import isnan
from statistics import fmean

import torch
from mmengine.evaluator import BaseMetric
from torch import Tensor

from mmclca.registry import METRICS


def average_precision(similarity: Tensor, relevant: Tensor) -> Tensor:
    """Average precision of each query, over the whole ranking.

    The mean, over the relevant images, of the share of relevant ones down to
    the rank of each.

    Args:
        similarity (Tensor): (N, M).
        relevant (Tensor): (N, M), bool: which images are to be found.

    Returns:
        Tensor: (N,), NaN where nothing is relevant.
    """
    return measure_queries(similarity, relevant, ())['mAP']


def measure_queries(
    similarity: Tensor, relevant: Tensor, recalls: Sequence[int]
) -> dict[str, Tensor]:
    """Average precision and recalls of each query.

    Args:
        similarity (Tensor): (N, M).
        relevant (Tensor): (N, M), bool: which images are to be found.
        recalls (Sequence[int]): The k of recall@k.

    Returns:
        dict[str, Tensor]: ``mAP`` and ``recall@k``, (N,), NaN where nothing
        is relevant.
    """
    order = similarity.argsort(dim=1, descending=True, stable=True)
    hits = (relevant & (similarity > -torch.inf)).gather(1, order)
    ranks = torch.arange(1, hits.shape[1] + 1, device=hits.device)
    precision = hits.cumsum(dim=1, dtype=torch.float).div_(ranks).mul_(hits)
    measured = dict(mAP=precision.sum(dim=1) / hits.sum(dim=1))
    for k in recalls:
        found, none = hits[:, :k].any(dim=1).double(), ~hits.any(dim=1)
        measured[f'recall@{k}'] = found.masked_fill(none, torch.nan)
    return measured


def mean_over_matched(
    measured: Sequence[dict[str, float]],
) -> dict[str, float]:
    """Means in per cent over the queries with a relevant gallery image.

    Args:
        measured (Sequence[dict[str, float]]): The numbers of
            :func:`measure_queries` and others, per query.

    Returns:
        dict[str, float]: Means by the same names, none without such queries;
        ``unmatched``, the number of the other queries.
    """
    matched = [one for one in measured if not isnan(one['mAP'])]
    names = matched[0] if matched else ()
    means = {name: 100 * fmean(x[name] for x in matched) for name in names}
    return dict(means, unmatched=len(measured) - len(matched))


@METRICS.register_module()
class RetrievalMetric(BaseMetric):
    """mAP over the whole ranking, and recall@k, in per cent.

    For a model that gives each query a ``pred_score``, its similarities to
    the gallery, and a ``gt_score``, not 0 where an image is to be found, as
    :class:`TokenReductionRetriever` does. Queries of which the gallery has no
    image are left out and counted in ``unmatched``. MMPretrain's metrics fail
    at these, and take one k for mAP that must fit the gallery.

    Args:
        topk (Sequence[int]): The k of recall@k. Defaults to (1, 5, 10).
        **kwargs: ``collect_device`` and ``prefix`` ('retrieval' by default)
            of mmengine's ``BaseMetric``.

    Raises:
        ValueError: If a k is no positive integer; at the end, if no query has
            an image to find.
    """

    default_prefix = 'retrieval'

    def __init__(self, topk: Sequence[int] = (1, 5, 10), **kwargs):
        super().__init__(**kwargs)
        if not topk or any(type(k) is not int or k < 1 for k in topk):
            raise ValueError(f'topk={topk!r}: expected positive integers')
        self.topk = tuple(topk)

    def process(self, data_batch, data_samples: Sequence[dict]) -> None:
        """Rank the gallery for each query.

        Args:
            data_batch: Not used.
            data_samples (Sequence[dict]): Predictions.
        """
        for sample in data_samples:
            pair = sample['pred_score'][None], sample['gt_score'][None] > 0
            measured = measure_queries(*pair, self.topk)
            self.results.append({k: v.item() for k, v in measured.items()})

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Return the mean over queries.

        Args:
            results (list): Of :meth:`process`.
        """
        means = mean_over_matched(results)
        if means['unmatched'] == len(results):
            raise ValueError(
                f'none of the {len(results)} queries has its class in the '
                'gallery: use the same classes'
            )
        return means
