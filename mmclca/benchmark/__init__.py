# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
import mmclca.registry  # noqa: F401, quiet, so before mmpretrain

from .candidates import Candidate, list_candidates
from .quantized import compare_quantized
from .steps import Setting, interleaved_seconds

__all__ = [
    'Candidate',
    'Setting',
    'compare_quantized',
    'interleaved_seconds',
    'list_candidates',
]
