# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from .candidates import Candidate, combine_methods, list_candidates
from .quantized import compare_quantized
from .steps import Setting, interleaved_seconds
from .throughput import Throughput, measure_throughput

__all__ = [
    'Candidate',
    'Setting',
    'Throughput',
    'combine_methods',
    'compare_quantized',
    'interleaved_seconds',
    'list_candidates',
    'measure_throughput',
]
