# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .base import ReducedModel
from .conversion import reduce_tokens

__all__ = ['ReducedModel', 'reduce_tokens']
