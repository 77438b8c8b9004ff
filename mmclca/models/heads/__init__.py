# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .cla_head import CLAHead
from .distilled_head import DistilledHead
from .last_linear import last_linear, set_last_linear
from .layer_fusion_head import LayerFusionHead
from .per_class_head import PerClassHead

__all__ = [
    'CLAHead',
    'DistilledHead',
    'LayerFusionHead',
    'PerClassHead',
    'last_linear',
    'set_last_linear',
]
