# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Accuracy, recall and their confidence interval; ReaL accuracy."""

import json
import re
from math import sqrt
from statistics import NormalDist, mean

import torch
import torch.nn.functional as F
from mmengine.evaluator import BaseMetric
from torch import Tensor

from mmclca.errors import Error
from mmclca.registry import METRICS
from mmclca.utils.files import open_file

IMAGES = 50_000  # validation images
MAX_BYTES = 2**24  # real.json has 0.5 MB


def accuracy(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the accuracy.

    Args:
        scores (Tensor): Class scores (..., N, K), NaN if not tested.
        labels (Tensor): Labels (N,).

    Returns:
        Tensor: Accuracy, 0 to 1, (...,); NaN if no image was tested.
    """
    return _mark_correct(scores, labels).nanmean(-1)


def recalls(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the recall per class; its mean is macro recall.

    An image counts with the share of repeats that classify it correctly.

    Args:
        scores (Tensor): Class scores (R, N, K) for R repeats, NaN if not
            tested.
        labels (Tensor): Labels (N,).

    Returns:
        Tensor: Recalls, 0 to 1, (K,); NaN if no image of the class was
        tested.
    """
    correct = _mark_correct(scores, labels).nanmean(0)
    members = F.one_hot(labels, scores.shape[-1]).T.bool()
    return torch.stack([correct[row].nanmean() for row in members])


def _mark_correct(scores: Tensor, labels: Tensor) -> Tensor:
    """Mark correct predictions (..., N): 1, else 0, or NaN if not tested."""
    correct = (scores.argmax(-1) == labels).float()
    return correct.masked_fill(scores[..., 0].isnan(), torch.nan)


def wilson(
    share: float, number: float, level: float = 0.95
) -> tuple[float, float]:
    """Wilson interval for a share, valid for few images too.

    E. B. Wilson, `Probable Inference, the Law of Succession, and Statistical
    Inference <https://doi.org/10.1080/01621459.1927.10502953>`_ (1927).

    Args:
        share (float): The share, 0 to 1.
        number (float): Number of independent images.
        level (float): Confidence level. Defaults to 0.95.

    Returns:
        tuple[float, float]: Lower and upper bound; 0 and 1 without images.
    """
    if number == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    middle = share + z * z / (2 * number)
    half = z * sqrt(share * (1 - share) / number + (z / (2 * number)) ** 2)
    scale = 1 + z * z / number
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def estimate_accuracy_interval(
    mean: float, independent: float, level: float = 0.95
) -> tuple[float, float]:
    """Wilson interval for a cross-validated mean accuracy.

    Each image or group counts half, because folds overlap, and repeats are
    not counted. See C. Nadeau, Y. Bengio, `Inference for the Generalization
    Error <https://doi.org/10.1023/A:1024068626366>`_ (2003).

    Args:
        mean (float): Mean accuracy over folds and repeats, 0 to 1.
        independent (float): Number of tested images, or groups.
        level (float): Confidence level. Defaults to 0.95.

    Returns:
        tuple[float, float]: Lower and upper bound.
    """
    return wilson(mean, independent / 2, level)


def clopper_pearson(
    share: float, number: float, level: float = 0.95
) -> tuple[float, float]:
    """Exact interval for a share, which also holds for rare events.

    C. J. Clopper, E. S. Pearson, `The Use of Confidence or Fiducial Limits
    <https://doi.org/10.1093/biomet/26.4.404>`_ (1934). Needs SciPy.

    Args:
        share (float): The share, 0 to 1.
        number (float): Number of independent images, not always an integer.
        level (float): Confidence level. Defaults to 0.95.

    Returns:
        tuple[float, float]: Lower and upper bound.
    """
    # of the extra for fit; scipy.stats takes a second longer to import
    from scipy.special import betaincinv

    tail, events = (1 - level) / 2, share * number
    others = number - events
    low = betaincinv(events, others + 1, tail) if events > 0 else 0.0
    high = betaincinv(events + 1, others, 1 - tail) if others > 0 else 1.0
    return float(low), float(high)


@METRICS.register_module()
class ReaLAccuracy(BaseMetric):
    """Percentage of images whose predicted class is among their ReaL labels.

    `Are we done with ImageNet?`, for ImageNet's validation images. Images
    without a label are not counted.

    Args:
        labels (str): ``real.json``: a list of labels per image, in the order
            of the numbers in the image names.
        **settings: ``collect_device`` and ``prefix`` of ``BaseMetric``.

    Raises:
        FileNotFoundError: If the file does not exist.
        Error: If the file is not a list for all images, or an image has
            another name.
    """

    default_prefix = 'accuracy'

    def __init__(self, labels: str, **settings):
        super().__init__(**settings)
        with open_file(labels) as file:
            self.labels = _parse_labels(file.read(MAX_BYTES), labels)

    def process(self, data_batch, data_samples) -> None:
        """Store whether the prediction is correct, for images with labels."""
        for sample in data_samples:
            if labels := self.get_labels(sample['img_path']):
                self.results.append(int(sample['pred_label']) in labels)

    def get_labels(self, path: str) -> list[int]:
        """Return the ReaL labels of an image by its file name."""
        (number,) = re.findall(r'(\d{8})\.\w+$', path) or [0]
        if not 1 <= int(number) <= IMAGES:
            raise Error(f'{path} is not named ILSVRC2012_val_*.JPEG')
        return self.labels[int(number) - 1]

    def compute_metrics(self, results: list[bool]) -> dict[str, float]:
        """Compute ``accuracy/top1``."""
        return dict(top1=100 * mean(results))


def _parse_labels(content: bytes, path: str) -> list[list[int]]:
    """Parse the labels per image from JSON.

    Raises:
        Error: If there is not a list of integers for each image.
    """
    try:
        labels = json.loads(content)
    except (RecursionError, ValueError):  # damaged, or another format
        labels = None
    is_complete = isinstance(labels, list) and len(labels) == IMAGES
    if not is_complete or not all(
        isinstance(image_labels, list)
        and all(type(label) is int for label in image_labels)
        for image_labels in labels
    ):
        raise Error(
            f'{path} is not a JSON file with {IMAGES} lists of labels: '
            'download real.json again'
        )
    return labels
