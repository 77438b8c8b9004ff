# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Web page that identifies photos and shows the remaining patches."""

import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .loaded_model import open_model
from .photos import read_photo
from .variants import Variants

__all__ = ['Variants', 'open_model', 'read_photo']
