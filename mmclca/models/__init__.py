# Copyright (c) mmclca contributors. Licensed under Apache-2.0.

# imported to register their classes
from . import baselines, losses, partial_init, selfsup, stems  # noqa: F401
from .backbones import Reducible, TokenReductionViT, fuse, fusible, reduces
from .classifiers import DistilledClassifier, TokenReductionClassifier
from .head_variants import with_layer_fusion
from .heads import last_linear, set_last_linear, with_nearest
from .layers.attention_pool import AttentionPool
from .pretrained import use_safe_initializer
from .recording import as_reducible, shallow_copy
from .reduced import reduce_tokens
from .reduction.cross_layer_cache import CrossLayerCache
from .reduction.reducers import TokenReducer
from .retrievers import TokenReductionRetriever
from .tuning import LoRAModel, without_lora
from .variants import Variant, get_reduction, list_methods, with_reduction

__all__ = [
    'AttentionPool',
    'CrossLayerCache',
    'DistilledClassifier',
    'LoRAModel',
    'Reducible',
    'TokenReducer',
    'TokenReductionClassifier',
    'TokenReductionRetriever',
    'TokenReductionViT',
    'Variant',
    'as_reducible',
    'fuse',
    'fusible',
    'get_reduction',
    'last_linear',
    'list_methods',
    'reduce_tokens',
    'reduces',
    'set_last_linear',
    'shallow_copy',
    'use_safe_initializer',
    'with_layer_fusion',
    'with_nearest',
    'with_reduction',
    'without_lora',
]
