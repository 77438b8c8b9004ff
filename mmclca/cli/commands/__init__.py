# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""A module for each command: ``parse_args`` and ``main``.

What imports torch is named at the top of a module by ``lazy``, so that
``--help`` and wrong options answer at once.
"""
