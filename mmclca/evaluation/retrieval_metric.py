# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from collections.abc import Sequence

import torch
from mmengine.evaluator import BaseMetric

from mmclca.registry import METRICS

from .retrieval import mean_over_matched, measure_queries


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
            raise ValueError(f'topk={topk!r} must be positive integers')
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
        """The mean over queries.

        Args:
            results (list): Of :meth:`process`.
        """
        measured = {
            name: torch.tensor([r[name] for r in results], dtype=torch.float64)
            for name in results[0]
        }
        means = mean_over_matched(measured)
        if not means:
            raise ValueError(
                f'none of {len(results)} queries has another image of its '
                'class in the gallery: take both from the same classes'
            )
        return dict(means, unmatched=int(measured['mAP'].isnan().sum()))
