# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Feature columns for a linear classifier."""

from dataclasses import dataclass, replace
from functools import cache

import torch
from frozen import DEPTH

from mmclca.models.heads import get_feature_subsets
from mmclca.registry import MODELS

COUNT = 3  # photos per class, unless others are named
ALL, LAST = 'all layers', 'last layer'
FIT = 'fit'  # with crops, and the features that cross-validation selects
# features and classifiers as users combine them
AVERAGES = 'CLS and average, last layer', 'CLS and average, all layers'
STRENGTHS = dict(ridge=0.3, logistic=10.0)
PARTS = 3  # CLS, average and deviation per layer


@dataclass(frozen=True)
class Reading:
    """Features and classifier.

    Args:
        features (str): ``ALL``, ``LAST`` or an entry in ``AVERAGES``. The
            last layer in a ViT has CLS, the last stage in a CNN average and
            deviation.
        classifier (str): A key in ``STRENGTHS``, or ``FIT``. Defaults to
            'ridge'.
        depth (int): First layers. Defaults to 12.
        count (int): Training photos per class. Defaults to 3.
    """

    features: str = ALL
    classifier: str = 'ridge'
    depth: int = DEPTH
    count: int = COUNT

    @property
    def for_full(self):
        """The same for the full network."""
        return replace(self, depth=DEPTH)

    def select(self, network):
        """Return the columns for a network."""
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


@cache
def find_subsets(network):
    """Return the feature subsets that ``fit`` combines, or None."""
    return get_feature_subsets(MODELS.build(network.get_config().model.head))


def select_stages(network, features):
    """Return the columns for all stages, or for the last one."""
    channels = get_channels(network)
    columns = torch.arange(2 * sum(channels))
    return columns if features == ALL else columns[-2 * channels[-1] :]


@cache
def get_channels(network):
    """Return the channels per layer, or a list per stage."""
    return network.get_config().model.head.in_channels
