# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.registry import import_modules

from .base import (
    Head,
    check_head,
    has_class_loss,
    last_linear,
    replace_by_linear,
    set_last_linear,
)
from .layer_heads import CLAHead, LayerFusionHead, get_feature_subsets
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
from .token_heads import DistilledHead, PerClassHead

__all__ = [
    'CLAHead',
    'DistilledHead',
    'Head',
    'LayerFusionHead',
    'NearestFusionHead',
    'NearestHead',
    'NearestLinearHead',
    'PerClassHead',
    'check_head',
    'drop_references',
    'has_class_loss',
    'keep_references',
    'last_linear',
    'nearest_cosine',
    'nearest_of_others',
    'get_feature_subsets',
    'rebuild_head',
    'replace_by_linear',
    'set_last_linear',
    'with_nearest',
]

# a new module registers its classes without a change here
import_modules(__name__, __path__)
