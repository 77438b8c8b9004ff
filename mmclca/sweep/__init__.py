# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Sweeps: many runs from one grid file (``tools/sweep.py``).

A grid lists runs, and each finished run writes one JSON file.
"""

from mmclca.utils.extras import require

NEEDED = ('pandas', 'submitit', 'tabulate')
require(*NEEDED, extra='sweep')
