# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate, Size
from .comparison import Result, compare
from .steps import Setting, interleaved_seconds
from .timing import compare_quantized

__all__ = [
    'Candidate',
    'Result',
    'Setting',
    'Size',
    'compare',
    'compare_quantized',
    'interleaved_seconds',
]
