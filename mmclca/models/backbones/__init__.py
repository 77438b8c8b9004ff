# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .base import ForeignWeights
from .cait import CaiT
from .patch_convnet import PatchConvNet
from .reducible import Reducible
from .resmlp import ResMLP
from .shallow import as_reducible, fuse, fusible, reduces, shallow_copy
from .token_reduction_vit import TokenReductionViT, ViTEmbedding

__all__ = [
    'CaiT',
    'ForeignWeights',
    'PatchConvNet',
    'Reducible',
    'ResMLP',
    'TokenReductionViT',
    'ViTEmbedding',
    'as_reducible',
    'fuse',
    'fusible',
    'reduces',
    'shallow_copy',
]
