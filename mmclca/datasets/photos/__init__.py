# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Read photos and classes from folders, tables and lists, and check them."""

from .check import PhotoCheck, check_photos
from .labeled_images import LabeledImages
from .problems import Problem
from .read import list_images, read_photos
from .spreads import CAPTURE_KINDS, Spread, group_by_capture, group_by_day

__all__ = [
    'PhotoCheck',
    'LabeledImages',
    'Problem',
    'Spread',
    'check_photos',
    'CAPTURE_KINDS',
    'group_by_capture',
    'group_by_day',
    'list_images',
    'read_photos',
]
