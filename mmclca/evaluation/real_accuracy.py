# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from statistics import mean

from mmengine.evaluator import BaseMetric

from mmclca.registry import METRICS


@METRICS.register_module()
class ReaLAccuracy(BaseMetric):
    """Share of images, in percent, whose class is one of their labels.

    `Are we done with ImageNet?`, for :class:`ImageNetReaL`.

    Args:
        **settings: ``collect_device`` and ``prefix`` of ``BaseMetric``.
    """

    default_prefix = 'accuracy'

    def process(self, data_batch, data_samples) -> None:
        """Note for each image whether it is named rightly."""
        self.results += [
            int(sample['pred_label']) in sample['gt_label'].tolist()
            for sample in data_samples
        ]

    def compute_metrics(self, results: list[bool]) -> dict[str, float]:
        """Compute ``accuracy/top1``."""
        return dict(top1=100 * mean(results))
