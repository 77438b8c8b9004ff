# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .layer_heads import (
    CLAHead,
    LayerFusionHead,
    SizedHead,
    last_linear,
    set_last_linear,
)
from .token_heads import DistilledHead, PerClassHead

__all__ = [
    'CLAHead',
    'DistilledHead',
    'LayerFusionHead',
    'PerClassHead',
    'SizedHead',
    'last_linear',
    'set_last_linear',
]
