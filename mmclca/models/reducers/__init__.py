# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .base import TokenReducer
from .evit import EViT
from .topk import TopK

__all__ = ['TokenReducer', 'EViT', 'TopK']
