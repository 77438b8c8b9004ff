# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""One module per command, with ``LISTING``, ``add_arguments`` and ``main``."""
