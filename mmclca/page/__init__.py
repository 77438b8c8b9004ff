# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .leaves import read_leaf, trained_by_demo
from .variants import Answer, Variants

__all__ = ['Answer', 'Variants', 'read_leaf', 'trained_by_demo']
