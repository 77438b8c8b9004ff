# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .backbones import *  # noqa: F403
from .baselines import *  # noqa: F403
from .classifiers import *  # noqa: F403
from .head_variants import with_layer_fusion
from .heads import *  # noqa: F403
from .layers.attention_pool import AttentionPool
from .losses import ThresholdedBCE
from .partial_init import PartialInit
from .recording import as_reducible, shallow_copy
from .reduced import *  # noqa: F403
from .reduction.cross_layer_cache import CrossLayerCache
from .reduction.reducers import *  # noqa: F403
from .retrievers import *  # noqa: F403
from .selfsup import *  # noqa: F403
from .stems import ConvStem, HMLPStem
from .tuning import LoRAModel, without_lora
from .variants import Variant, get_reduction, list_methods, with_reduction

__all__ = [
    'AttentionPool',
    'ConvStem',
    'CrossLayerCache',
    'HMLPStem',
    'LoRAModel',
    'PartialInit',
    'ThresholdedBCE',
    'Variant',
    'as_reducible',
    'list_methods',
    'get_reduction',
    'shallow_copy',
    'with_layer_fusion',
    'with_reduction',
    'without_lora',
]
