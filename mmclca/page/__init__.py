# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page that identifies photos and shows the remaining patches."""

from .opened import OpenedModel, open_model
from .photos import demo_checkpoint, read_photo
from .variants import Prediction, Variants

__all__ = [
    *('OpenedModel', 'Prediction', 'Variants', 'open_model'),
    *('read_photo', 'demo_checkpoint'),
]
