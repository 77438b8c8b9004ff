# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Synthetic leaves of cultivars, for the demo and for tests."""

from .cultivars import Cultivar, draw_leaf, generate_leaves, make_cultivars

__all__ = ['Cultivar', 'draw_leaf', 'generate_leaves', 'make_cultivars']
