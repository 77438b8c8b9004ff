# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page that classifies photos and shows the remaining patches."""

from .photos import demo_checkpoint, read_photo
from .variants import Prediction, Variants

__all__ = ['Prediction', 'Variants', 'read_photo', 'demo_checkpoint']
