# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .token_reduction_vit import TokenReductionViT

__all__ = ['TokenReductionViT']
