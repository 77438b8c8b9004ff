# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import json
import re
from statistics import mean

from mmengine.evaluator import BaseMetric

from mmclca.registry import METRICS
from mmclca.utils.files import open_file

IMAGES = 50_000  # of validation
LARGEST = 2**24  # bytes of labels; real.json has 0.5 MB


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
        with open_file(labels) as file:
            self.labels = _read(file.read(LARGEST))
        if len(self.labels) != IMAGES:
            raise ValueError(
                f'{labels} is not a JSON file with {IMAGES} lists of labels: '
                'download real.json again'
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
            raise ValueError(f'{path} is not named ILSVRC2012_val_*.JPEG')
        return self.labels[int(number) - 1]

    def compute_metrics(self, results: list[bool]) -> dict[str, float]:
        """Compute ``accuracy/top1``."""
        return dict(top1=100 * mean(results))


def _read(content: bytes) -> list[list[int]]:
    """Read lists of labels, by JSON, which runs no code; else nothing."""
    try:
        return [[int(label) for label in one] for one in json.loads(content)]
    except (RecursionError, TypeError, ValueError):
        return []
