# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Cases of newer reducers and of baselines, where they are at hand."""

from functools import partial

from public_cases import by_system, public

DRAWN = public('newer')
CASES, SHAPES = DRAWN.load()
each = partial(by_system, CASES)
