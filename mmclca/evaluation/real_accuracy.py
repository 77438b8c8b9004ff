# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from statistics import mean

from mmengine import load
from mmengine.evaluator import BaseMetric

from mmclca.registry import METRICS

IMAGES = 50_000  # of validation


@METRICS.register_module()
class ReaLAccuracy(BaseMetric):
    """Share of images, in percent, whose class is one of their ReaL labels.

    `Are we done with ImageNet?`, for ImageNet's validation images; those
    without a label do not count.

    Args:
        labels (str): ``real.json``: for each image, in the order of the
            numbers in their names, a list of labels.
        **settings: ``collect_device`` and ``prefix`` of ``BaseMetric``.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no such list of all images, or an image has
            another name.
    """

    default_prefix = 'accuracy'

    def __init__(self, labels: str, **settings):
        super().__init__(**settings)
        self.labels = load(labels)
        count, kinds = len(self.labels), {type(one) for one in self.labels}
        if count != IMAGES or kinds != {list}:
            raise ValueError(
                f'{labels}: {count} entries, not {IMAGES} lists: get it anew'
            )

    def process(self, data_batch, data_samples) -> None:
        """Note for each image with labels whether it is named rightly."""
        for sample in data_samples:
            if labels := self.labels_of(sample['img_path']):
                self.results.append(int(sample['pred_label']) in labels)

    def labels_of(self, path: str) -> list[int]:
        """Find the labels of an image by its name."""
        (number,) = re.findall(r'(\d{8})\.\w+$', path) or [0]
        if not 1 <= int(number) <= IMAGES:
            raise ValueError(f'{path} is not named as ILSVRC2012_val_*.JPEG')
        return self.labels[int(number) - 1]

    def compute_metrics(self, results: list[bool]) -> dict[str, float]:
        """Compute ``accuracy/top1``."""
        return dict(top1=100 * mean(results))
