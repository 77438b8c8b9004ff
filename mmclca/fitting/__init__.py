# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Fit an image classifier to photos, as ``python -m mmclca fit`` does."""

import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .fitted_model import FittedModel, fit

__all__ = ['FittedModel', 'fit']
