# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""From photographs to a model: what ``mmclca fit`` does."""

from .fitted_model import FittedModel, fit

__all__ = ['FittedModel', 'fit']
