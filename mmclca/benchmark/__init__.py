# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate, Images, Size
from .comparison import Result, compare
from .interleaved import interleaved_seconds
from .setting import Setting

__all__ = [
    'Candidate',
    'Images',
    'Result',
    'Setting',
    'Size',
    'compare',
    'interleaved_seconds',
]
