# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from mmclca.registry import import_modules

from .base import ForeignWeights, fuse, fusible
from .cait import CaiT
from .patch_convnet import PatchConvNet
from .reducible import Reducible, reduces
from .relative_positions import RelativePositions
from .resmlp import ResMLP
from .timm_stages import TimmStages
from .token_reduction_vit import TokenReductionViT, ViTEmbedding

__all__ = [
    'CaiT',
    'ForeignWeights',
    'PatchConvNet',
    'Reducible',
    'RelativePositions',
    'ResMLP',
    'TimmStages',
    'TokenReductionViT',
    'ViTEmbedding',
    'fuse',
    'fusible',
    'reduces',
]

# a new module registers its classes without a change here
import_modules(__name__, __path__)
