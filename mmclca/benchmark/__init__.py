# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate, Size
from .comparison import Result, compare
from .interleaved import images_per_second, interleaved_seconds
from .setting import Setting

__all__ = [
    'Candidate',
    'Result',
    'Setting',
    'Size',
    'compare',
    'images_per_second',
    'interleaved_seconds',
]
