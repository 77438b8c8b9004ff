# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
from importlib import import_module


class lazy:  # noqa: N801, used like a function
    """A module that is imported when something of it is used first.

    Commands name modules that import torch by it, so that ``--help`` and
    wrong options answer at once.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str):
        return getattr(import_module(self._name), name)
