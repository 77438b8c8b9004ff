# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .base import ReducedModel
from .conversion import reduce_tokens
from .timm_backbone import TimmViT

__all__ = ['ReducedModel', 'TimmViT', 'reduce_tokens']
