# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .layer_heads import (
    CLAHead,
    LayerFusionHead,
    SizedHead,
    check_channels,
    last_linear,
    set_last_linear,
)
from .nearest_heads import (
    NearestFusionHead,
    NearestHead,
    NearestLinearHead,
    drop_references,
    keep_references,
    nearest_cosine,
    nearest_of_others,
    rebuild_head,
    with_nearest,
)
from .token_heads import DistilledHead, PerClassHead, has_class_loss

__all__ = [
    'CLAHead',
    'DistilledHead',
    'LayerFusionHead',
    'NearestFusionHead',
    'NearestHead',
    'NearestLinearHead',
    'PerClassHead',
    'SizedHead',
    'check_channels',
    'drop_references',
    'has_class_loss',
    'keep_references',
    'last_linear',
    'nearest_cosine',
    'nearest_of_others',
    'rebuild_head',
    'set_last_linear',
    'with_nearest',
]
