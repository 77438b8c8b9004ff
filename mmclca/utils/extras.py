# Copyright (c) mmclca contributors. Licensed under Apache-2.0.
"""Optional packages."""

from importlib.util import find_spec


def require(*names: str, extra: str) -> None:
    """Raise ``ImportError`` with the pip command if packages are missing."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ImportError(
            f'{", ".join(missing)} is not installed: '
            f'pip install "mmclca[{extra}]"'
        )
