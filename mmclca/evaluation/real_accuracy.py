# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import re
from statistics import mean

from mmengine import load
from mmengine.evaluator import BaseMetric

from mmclca.registry import METRICS

NUMBER = re.compile(r'(\d{8})\.\w+$')


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
        ValueError: If there are no labels of an image.
    """

    default_prefix = 'accuracy'

    def __init__(self, labels: str, **settings):
        super().__init__(**settings)
        self.place, self.labels = labels, load(labels)

    def process(self, data_batch, data_samples) -> None:
        """Note for each image with labels whether it is named rightly."""
        for sample in data_samples:
            if labels := self.labels_of(sample['img_path']):
                self.results.append(int(sample['pred_label']) in labels)

    def labels_of(self, path: str) -> list[int]:
        """Find the labels of an image by its name."""
        found = NUMBER.search(path)
        number = int(found[1]) if found else 0
        if not 1 <= number <= len(self.labels):
            raise ValueError(
                f'{self.place} has labels of {len(self.labels)} images, none '
                f'of {path}: names end with a number of eight digits, as '
                'ILSVRC2012_val_00000001.JPEG'
            )
        return self.labels[number - 1]

    def compute_metrics(self, results: list[bool]) -> dict[str, float]:
        """Compute ``accuracy/top1``."""
        return dict(top1=100 * mean(results))
