# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Tools of MMPretrain's that work on configs and logs of ours as they are."""

import runpy
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from .mistakes import plain_errors


def upstream(name: str) -> Callable:
    """The ``main`` of a tool of MMPretrain's; its mistakes are one line.

    Args:
        name (str): Its file, in the ``tools`` of MMPretrain.
    """

    def main():
        package = Path(find_spec('mmpretrain').origin).parent
        with plain_errors():
            runpy.run_path(str(package / '.mim/tools' / name))['main']()

    return main
