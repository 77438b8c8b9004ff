# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Columns of the stored features that a linear classifier uses."""

from dataclasses import dataclass
from functools import cache

import torch
from frozen import DEPTH

ALL, LAST = 'all layers', 'last layer'
# what users read of a full ViT, and with which classifiers
AVERAGES = 'CLS and average, last layer', 'CLS and average, all layers'
STRENGTHS = dict(ridge=0.3, logistic=10.0)
PARTS = 3  # CLS, average and deviation per layer of a ViT


@dataclass(frozen=True)
class Reading:
    """Features and classifier of a row.

    Args:
        features (str): ``ALL``, ``LAST`` or one of ``AVERAGES``. The last
            layer of a ViT has the CLS token, the last stage of a CNN average
            and deviation.
        classifier (str): A key of ``STRENGTHS``. Defaults to 'ridge'.
        depth (int): First layers of a ViT. Defaults to 12.
    """

    features: str = ALL
    classifier: str = 'ridge'
    depth: int = DEPTH

    def select(self, network):
        """Return the columns for a network, a tensor of positions."""
        if not network.is_vit:
            return select_stages(network, self.features)
        channels = get_channels(network)
        columns = torch.arange(DEPTH * PARTS * channels)
        columns = columns.view(DEPTH, PARTS, channels)[: self.depth]
        return {
            ALL: columns,
            LAST: columns[-1, 0],
            AVERAGES[0]: columns[-1, :2],
            AVERAGES[1]: columns[:, :2],
        }[self.features].flatten()


def select_stages(network, features):
    """Return the columns of all stages of a CNN, or of the last one."""
    channels = get_channels(network)
    columns = torch.arange(2 * sum(channels))
    return columns if features == ALL else columns[-2 * channels[-1] :]


@cache
def get_channels(network):
    """Return the channels of a layer, or of each stage of a CNN."""
    return network.get_config().model.head.in_channels
