# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Photographs as people have them: a folder a class, or a table."""

from .check import Checked, check_photographs
from .lists import write_lists
from .photographs import Photographs
from .read import read_photographs

__all__ = [
    'Checked',
    'Photographs',
    'check_photographs',
    'read_photographs',
    'write_lists',
]
