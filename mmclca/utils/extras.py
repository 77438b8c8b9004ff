# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Packages that only parts of this one need."""

from importlib.util import find_spec


def require(*names: str, extra: str) -> None:
    """Check that packages are installed.

    Raises:
        ImportError: Names the missing packages and how to install them.
    """
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'{", ".join(missing)} is not installed: '
            f'pip install "mmclca[{extra}]"'
        )
