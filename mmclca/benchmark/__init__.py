# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate
from .comparison import Result, compare
from .interleaved import interleaved_seconds
from .setting import Setting
from .size import Images, Size

__all__ = [
    'Candidate',
    'Images',
    'Result',
    'Setting',
    'Size',
    'compare',
    'interleaved_seconds',
]
