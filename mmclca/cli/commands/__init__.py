# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One module per command, with ``parse_args`` and ``main``.

Packages that import torch come from ``cli.packages`` and are imported at first
use, so ``--help`` and wrong options answer immediately.
"""
