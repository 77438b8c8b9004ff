# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""What frozen features of few training images are good for."""

from .arms import Frozen, ProbeArm, probe_arms
from .draws import draw, read_draw, write_draws
from .measuring import measure, measure_missing
from .speed import milliseconds

__all__ = [
    'Frozen',
    'ProbeArm',
    'draw',
    'measure',
    'measure_missing',
    'milliseconds',
    'probe_arms',
    'read_draw',
    'write_draws',
]
