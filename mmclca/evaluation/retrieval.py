# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Retrieval metrics: average precision and recall@k.

Similarities are (N, M), for N queries and M gallery images. Images to ignore,
such as the query itself, have minus infinity.
"""

from collections.abc import Sequence
from math import isnan
from statistics import fmean

import torch
from mmengine.evaluator import BaseMetric
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import METRICS


def measure_queries(
    similarity: Tensor, relevant: Tensor, recalls: Sequence[int]
) -> dict[str, Tensor]:
    """Compute average precision and recall@k per query.

    ``relevant`` is bool, (N, M). Returns ``mAP``, the average precision: the
    mean over the relevant images of the precision at their rank; and
    ``recall@k`` for each k in ``recalls``: 1 if a relevant image is among the
    first k, else 0. Both are (N,), NaN for a query without relevant images.
    """
    order = similarity.argsort(dim=1, descending=True, stable=True)
    hits = (relevant & (similarity > -torch.inf)).gather(1, order)
    ranks = torch.arange(1, hits.shape[1] + 1, device=hits.device)
    precision = hits.cumsum(dim=1, dtype=torch.float).div_(ranks).mul_(hits)
    measured = dict(mAP=precision.sum(dim=1) / hits.sum(dim=1))
    for k in recalls:
        recall = hits[:, :k].any(dim=1).double()
        is_unmatched = ~hits.any(dim=1)
        measured[f'recall@{k}'] = recall.masked_fill(is_unmatched, torch.nan)
    return measured


def mean_over_matched(
    measured: Sequence[dict[str, float]],
) -> dict[str, float]:
    """Means in percent over the queries with a relevant gallery image.

    ``measured`` has the values of :func:`measure_queries` per query. The
    result has the same keys (none without such queries) and ``unmatched``, the
    number of other queries.
    """
    matched = [row for row in measured if not isnan(row['mAP'])]
    names = matched[0] if matched else ()
    means = {name: 100 * fmean(row[name] for row in matched) for name in names}
    return dict(means, unmatched=len(measured) - len(matched))


@METRICS.register_module()
class RetrievalMetric(BaseMetric):
    """mAP over the whole ranking, and recall@k, in percent.

    For a model such as :class:`TokenReductionRetriever`: ``pred_score`` are
    the similarities of a query to the gallery, ``gt_score`` is not 0 for
    relevant images. Queries without relevant images are excluded and counted
    in ``unmatched``. MMPretrain's metrics fail for such queries, and need a k
    for mAP that fits the gallery.

    Args:
        topk (Sequence[int]): Values of k for recall@k. Defaults to (1, 5, 10).
        **kwargs: ``collect_device`` and ``prefix`` ('retrieval' by default) of
            mmengine's ``BaseMetric``.

    Raises:
        Error: If a k is not a positive integer; during evaluation, if all
            queries lack relevant images.
    """

    default_prefix = 'retrieval'

    def __init__(self, topk: Sequence[int] = (1, 5, 10), **kwargs):
        super().__init__(**kwargs)
        if not topk or any(type(k) is not int or k < 1 for k in topk):
            raise Error(f'topk={topk!r}: expected positive integers')
        self.topk = tuple(topk)

    def process(self, data_batch, data_samples: Sequence[dict]) -> None:
        """Rank the gallery for each query."""
        for sample in data_samples:
            measured = measure_queries(
                sample['pred_score'][None],
                sample['gt_score'][None] > 0,
                self.topk,
            )
            self.results.append({k: v.item() for k, v in measured.items()})

    def compute_metrics(self, results: list) -> dict[str, float]:
        """Average over the queries."""
        means = mean_over_matched(results)
        if means['unmatched'] == len(results):
            raise Error(
                f'none of the {len(results)} queries has its class in the '
                'gallery: use the same classes'
            )
        return means
