# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Many runs from one small file: ``tools/sweep.py``.

A grid says which cells there are, a cell is one run, and each finished run
leaves one JSON file.
"""

from mmclca.utils.extras import require

NEEDED = ('pandas', 'submitit', 'tabulate')
require(*NEEDED, extra='sweep')
