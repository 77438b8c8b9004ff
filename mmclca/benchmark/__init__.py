# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate, Size
from .results import Result, compare
from .setting import Setting
from .turns import images_per_second, seconds_in_turns

__all__ = [
    'Candidate',
    'Result',
    'Setting',
    'Size',
    'compare',
    'images_per_second',
    'seconds_in_turns',
]
