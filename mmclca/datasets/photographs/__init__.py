# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read photos and classes from folders, tables and lists, and check them."""

from .check import Checked, check_photographs
from .labeled_images import LabeledImages
from .read import images_at, images_of_split, read_photographs
from .series import find_series

__all__ = [
    'Checked',
    'LabeledImages',
    'check_photographs',
    'find_series',
    'images_at',
    'images_of_split',
    'read_photographs',
]
